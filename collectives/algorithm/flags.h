#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "flags": every rank raises its flag in shared memory and waits for all others'. 1 step, n - 1
/// flags read by each rank.
extern const Algorithm kFlagsBarrier;

}  // namespace allring
