#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "collectives/kernels/reduce.h"
#include "collectives/transport/group.h"

namespace allring {

enum class CollectiveKind : std::uint8_t {
  kAllreduce,
  kReduceScatter,
  kAllgather,
  kBroadcast,
  kAlltoall,
  kBarrier,
};
std::string_view collective_kind_name(CollectiveKind kind);

/// One collective, as an algorithm sees it. Which members are used depends on the kind; buffers
/// never overlap except where "in place" is said. Every rank passes the same values except for
/// the pointers and where noted.
///
/// - allreduce: input and output hold `count` elements; in place when they are equal.
/// - reduce_scatter: input holds `count` elements, counts[r] (sum = count) go to rank r; output
///   holds counts[rank]; in place when output is its own place in input.
/// - allgather: input holds counts[rank] elements, output the concatenation of all, in rank
///   order; in place when input is its own place in output.
/// - broadcast: output holds `count` elements on each rank; on `root` it is the source.
/// - alltoall: input is the concatenation, in rank order, of counts[r] elements for rank r; output
///   that of recv_counts[r] from rank r. Per-rank values. Not in place.
/// - barrier: nothing.
struct CollectiveArgs {
  CollectiveKind kind = CollectiveKind::kBarrier;
  Reduction reduction = {};  ///< dtype is valid for every kind but barrier
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  std::span<const std::size_t> counts = {};
  std::span<const std::size_t> recv_counts = {};
  Rank root = 0;

  std::size_t bytes() const { return count * element_bytes(reduction.dtype); }
};

/// A way to run one kind of collective: a row of the catalog. Straight-line blocking code; no
/// state outside the group.
struct Algorithm {
  std::string_view name;  ///< "ring", "push", ...: unique within a kind
  CollectiveKind kind;
  /// Whether run() gives the right result for these arguments and this group. Must be equal on all
  /// ranks: looks only at kind, dtype, op and count of `args` (not at the count of an alltoall,
  /// which differs from rank to rank), and at the group.
  bool (*supports)(const CollectiveArgs& args, Group& group);
  /// Blocks until this rank's part is done: output is complete, input may be reused. Others may
  /// still be at work, and after a failure ranks may disagree about whether it succeeded: the
  /// control plane, not the algorithm, decides that. @return kPeerLost, kTimedOut, or the group's
  /// abort reason.
  Status (*run)(const CollectiveArgs& args, Group& group, Deadline deadline);
  /// Estimated microseconds, for choosing among rows; looks at the same as supports().
  double (*cost_us)(const CollectiveArgs& args, Group& group);
  /// Whether every element of the result is input[0] op input[1] op ..., in the order of ranks,
  /// finished once: then its bits depend on the inputs alone, not on size, split, topology or
  /// timing. Matters for what rounding_depends_on_order() says, and to rows that add.
  bool in_rank_order = false;
};

}  // namespace allring
