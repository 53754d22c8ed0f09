#pragma once

#include "collectives/base/types.h"

namespace allring {

/// What one rank does in one step on a ring: both transfers at once. Chunks are numbered by the
/// rank that owns them, 0 .. size-1.
struct RingStep {
  Rank send_to = 0;
  Rank recv_from = 0;
  int send_chunk = 0;
  int recv_chunk = 0;
};

/// Steps of each phase: size - 1.
int ring_steps(int size);

/// Step `step` of a reduce-scatter on a ring: send send_chunk's partial sum to the next rank,
/// receive recv_chunk's from the one before and add one's own data to it. The chunk received in a
/// step is the one sent in the next; the last one received is chunk `rank`, then complete. Each
/// rank sends size - 1 chunks: S * (n - 1) / n bytes of S, the least possible. Patarasuk and Yuan,
/// "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel Distrib.
/// Comput. 69 (2009) 117-124: the ring-based algorithm's first half.
///
/// REQUIRES: 0 <= rank < size, 0 <= step < ring_steps(size).
RingStep ring_reduce_scatter_step(Rank rank, int size, int step);

/// Step `step` of an allgather on a ring, which starts with each rank holding chunk `rank` and ends
/// with all ranks holding all chunks: the second half of the same algorithm (Thakur et al.,
/// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005), section 4.1,
/// on its own).
RingStep ring_allgather_step(Rank rank, int size, int step);

}  // namespace allring
