#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "binomial": every rank that has the data passes them on, segment by segment, so that the levels
/// of the tree work at the same time. Thakur, Rabenseifner and Gropp, "Optimization of collective
/// communication operations in MPICH", IJHPCA 19 (2005), section 4.2.
///
/// log2(n) steps plus one per further segment; the root sends S log2(n) bytes, a leaf none.
extern const Algorithm kBinomialBroadcast;

}  // namespace allring
