#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "dissemination": ceil(log2 n) steps of one empty message from each rank. Hensgen, Finkel and
/// Manber, "Two algorithms for barrier synchronization", Int. J. Parallel Programming 17 (1988),
/// section 3.
extern const Algorithm kDisseminationBarrier;

}  // namespace allring
