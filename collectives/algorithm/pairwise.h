#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "pairwise": every rank talks to every other at once, so there are no partial results: whoever
/// owns a chunk gets it from all ranks as they had it and adds them up in one pass, in the order of
/// ranks. That is one rounding for 16-bit floats, and the same bits whatever the arrival. For few
/// ranks it is also quick: two steps. The long-message algorithm of Thakur, Rabenseifner and Gropp,
/// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005), section 4.3
/// (pairwise exchange), in segments.
///
/// Allreduce: the owners send their chunks to all. 2 steps of n - 1 messages, 2 S (n - 1) / n bytes
/// sent by each rank of S.
extern const Algorithm kPairwiseAllreduce;
/// 1 step of n - 1 messages, S (n - 1) / n bytes.
extern const Algorithm kPairwiseReduceScatter;
/// 1 step of n - 1 messages, each byte sent once from where it is to where it belongs: section 4.6
/// there.
extern const Algorithm kPairwiseAlltoall;

}  // namespace allring
