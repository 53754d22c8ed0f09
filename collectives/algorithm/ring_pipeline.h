#pragma once

#include <cstddef>
#include <span>

#include "collectives/kernels/reduce.h"
#include "collectives/transport/group.h"

namespace allring {

/// What goes round a ring: reduce-scatter, allgather, or one after the other (allreduce), over
/// chunks that are owned by ranks. Buffers as in CollectiveArgs of these kinds.
struct RingTask {
  bool reduces = false;
  bool gathers = false;
  Reduction reduction;  ///< of a task that only gathers: the dtype
  /// Elements of each rank's chunk.
  std::span<const std::size_t> counts;
  /// The whole vector, for tasks that reduce.
  const std::byte* input = nullptr;
  /// The whole vector, for tasks that gather (with this rank's chunk in place unless it is reduced
  /// here); else the own chunk. May equal input if the task gathers.
  std::byte* output = nullptr;
};

/// Runs it. Ranks of one host are neighbours on the ring, so that each host sends to one other
/// only.
///
/// Chunks are cut into segments, and a few segments go round together (a slab): while one is added,
/// the others travel, and the next slab's first step overlaps with this slab's last. A rank
/// receives into a window of scratch memory, and never waits for a send before it has posted the
/// receives that the sender's progress depends on.
///
/// Steps: n - 1 for each of the two phases, times the number of slabs in which they are pipelined.
/// Bytes sent: all chunks but one, for each phase. REQUIRES: group.size() >= 2.
Status run_ring(const RingTask& task, Group& group, Deadline deadline);

/// Estimated microseconds for `phases` passes of `bytes` in total.
double ring_cost_us(std::size_t bytes, int phases, const Group& group);

}  // namespace allring
