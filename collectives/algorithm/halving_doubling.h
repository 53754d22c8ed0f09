#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "halving_doubling": reduce-scatter by recursive halving, allgather by recursive doubling, for
/// vectors too short for the ring. Ranks beyond a power of two fold into a neighbour at first and
/// are told the result at last. Rabenseifner's algorithm: Thakur, Rabenseifner and Gropp,
/// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005), section 4.5.
///
/// 2 log2(p) steps, 2 S (p - 1) / p bytes sent by each rank, p the largest power of two <= n;
/// otherwise 2 steps and S bytes more. Not for sums and products of 16-bit floats over more than
/// two ranks.
extern const Algorithm kHalvingDoublingAllreduce;

}  // namespace allring
