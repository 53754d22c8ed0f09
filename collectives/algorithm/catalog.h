#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// All rows of a kind, in order of preference at equal cost.
std::span<const Algorithm> algorithms(CollectiveKind kind);

/// What options force upon the choice. ALGORITHM: "ring" (every kind that has such a row) or
/// "allreduce=ring,allgather=ring". DETERMINISTIC: rows whose bits depend on the inputs alone.
/// Copies share what they have warned about. Thread-safe but for set_deterministic().
class ForcedAlgorithms {
 public:
  /// @return kInvalidArgument for an unknown kind or name; the message lists what there is.
  static Result<ForcedAlgorithms> parse(std::string_view text);
  /// Empty when nothing is forced.
  std::string_view name(CollectiveKind kind) const;
  /// From now on floats are reduced by rows that are in_rank_order only.
  void set_deterministic(bool on) { deterministic_ = on; }
  bool deterministic() const { return deterministic_; }
  /// True the first time.
  bool warn_once() const { return !warned_->exchange(true); }

 private:
  std::vector<std::pair<CollectiveKind, std::string>> forced_;
  bool deterministic_ = false;
  std::shared_ptr<std::atomic<bool>> warned_ = std::make_shared<std::atomic<bool>>(false);
};

/// Why `row` does not run `args` on `group`, in words; empty if it can, and may where rows must be
/// deterministic.
std::string obstacle(const Algorithm& row, const CollectiveArgs& args, Group& group,
                     const ForcedAlgorithms& forced);

/// The row that runs `args` on `group`: the forced one if it supports the case and, where that is
/// asked for, is deterministic (else one warning for this `forced`, and the best), otherwise such a
/// row of least cost. Groups of one rank always run "self". There is one for every valid argument.
/// Equal on all ranks.
const Algorithm& choose(const CollectiveArgs& args, Group& group, const ForcedAlgorithms& forced);

}  // namespace allring
