#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// Groups of one rank: copies and finishes, 0 steps, nothing on the wire.
extern const Algorithm kSelfAllreduce;
extern const Algorithm kSelfReduceScatter;
extern const Algorithm kSelfAllgather;
extern const Algorithm kSelfBroadcast;
extern const Algorithm kSelfAlltoall;
extern const Algorithm kSelfBarrier;

}  // namespace allring
