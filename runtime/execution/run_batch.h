#pragma once

#include "collectives/base/status.h"
#include "collectives/communicator/communicator.h"
#include "runtime/execution/batch.h"
#include "runtime/execution/scratch.h"
#include "runtime/strategy/strategy.h"

namespace allring {

/// Runs one batch: allocates the outputs that callers left to us, runs the collective and fills in
/// each tensor's completion. Blocks until this rank's part is done. Outputs may be the inputs for
/// allreduce and broadcast, and must not overlap otherwise.
/// @return why it failed; then every rank's part of this batch is void, and so is the communicator.
Status run_batch(Batch& batch, Communicator& communicator, Strategy& strategy, Scratch& scratch);

}  // namespace allring
