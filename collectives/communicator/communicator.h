#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "collectives/algorithm/catalog.h"
#include "collectives/transport/group.h"

namespace allring {

/// A group and the catalog: the collectives, as runtime and benchmarks call them. Every method
/// blocks the caller until its own part is done, must be called by all ranks of the group in the
/// same order with matching arguments (see CollectiveArgs), and fails with kPeerLost, kTimedOut or
/// the abort reason. Counts are elements. Thread-compatible, except abort().
class Communicator {
 public:
  Communicator(Group& group, ForcedAlgorithms forced);

  Group& group() { return group_; }

  /// output[i] = finish(op over ranks of input[i]); input == output is in place.
  Status allreduce(const void* input, void* output, std::size_t count, const Reduction& reduction,
                   Deadline deadline);
  /// Rank r gets elements counts[0]+..+counts[r-1] and following of the reduced vector.
  Status reduce_scatter(const void* input, void* output, std::span<const std::size_t> counts,
                        const Reduction& reduction, Deadline deadline);
  /// Rank r contributes counts[r] elements; everyone gets all, in rank order.
  Status allgather(const void* input, void* output, std::span<const std::size_t> counts,
                   DataType dtype, Deadline deadline);
  /// Everyone gets root's `count` elements.
  Status broadcast(void* buffer, std::size_t count, DataType dtype, Rank root, Deadline deadline);
  /// send_counts[r] elements go to rank r, recv_counts[r] come from it, both in rank order.
  Status alltoall(const void* input, void* output, std::span<const std::size_t> send_counts,
                  std::span<const std::size_t> recv_counts, DataType dtype, Deadline deadline);
  /// Returns on no rank before all ranks have called it.
  Status barrier(Deadline deadline);

  void abort(Status reason) noexcept { group_.abort(std::move(reason)); }

 private:
  /// What decides about the row (Algorithm::supports and cost_us look at nothing else), and the
  /// row.
  struct Choice {
    CollectiveKind kind = CollectiveKind::kBarrier;
    DataType dtype = DataType::kUint8;
    ReduceOp op = ReduceOp::kSum;
    std::size_t count = 0;
    const Algorithm* row = nullptr;
  };
  static constexpr std::size_t kChoices = 64;

  const Algorithm& choose_row(const CollectiveArgs& args);
  Status run(const CollectiveArgs& args, Deadline deadline);

  Group& group_;
  ForcedAlgorithms forced_;
  // Comparing costs takes as long as the smallest allreduce itself, and training repeats its sizes.
  std::array<Choice, kChoices> choices_;
};

}  // namespace allring
