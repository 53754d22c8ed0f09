#pragma once

#include <span>

#include "collectives/base/status.h"
#include "collectives/communicator/communicator.h"
#include "runtime/execution/batch.h"
#include "runtime/execution/scratch.h"

namespace allring {

/// How what the ranks have computed becomes what all of them go on with: the answer to a batch of
/// allreduces. Implementations hold no state of a batch and may be used by several lanes at once.
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Reads the inputs of the batch, writes its outputs. Blocks the lane until this rank's part is
  /// done.
  /// @param batch prepared allreduces that agree in dtype, op and scales.
  /// @param scratch the lane's; the fusion buffer is made from it.
  /// @return what the communicator gave; outputs are undefined then.
  virtual Status update(std::span<BatchTensor> batch, Communicator& communicator,
                        Scratch& scratch) = 0;
};

}  // namespace allring
