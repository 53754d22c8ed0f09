#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "ring": bandwidth-optimal and free of congestion, with a latency that grows with the number of
/// ranks. Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
/// workstations", J. Parallel Distrib. Comput. 69 (2009), section 4; Baidu and Horovod brought it
/// to deep learning.
///
/// Allreduce: 2 (n - 1) steps, 2 S (n - 1) / n bytes sent by each rank of S. The owner's last
/// addition scales. Not for sums and products of 16-bit floats over more than two ranks, where each
/// hop would round.
extern const Algorithm kRingAllreduce;
/// n - 1 steps, S (n - 1) / n bytes; as above otherwise.
extern const Algorithm kRingReduceScatter;
/// n - 1 steps, S (n - 1) / n bytes of the result's S. Any dtype, any counts. Thakur, Rabenseifner
/// and Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005),
/// section 4.1.
extern const Algorithm kRingAllgather;

}  // namespace allring
