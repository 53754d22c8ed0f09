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

/// What the option ALGORITHM forces: "ring" (every kind that has such a row) or
/// "allreduce=ring,allgather=ring". Copies share what they have warned about. Thread-safe.
class ForcedAlgorithms {
 public:
  /// @return kInvalidArgument for an unknown kind or name; the message lists what there is.
  static Result<ForcedAlgorithms> parse(std::string_view text);
  /// Empty when nothing is forced.
  std::string_view name(CollectiveKind kind) const;
  /// True the first time.
  bool warn_once() const { return !warned_->exchange(true); }

 private:
  std::vector<std::pair<CollectiveKind, std::string>> forced_;
  std::shared_ptr<std::atomic<bool>> warned_ = std::make_shared<std::atomic<bool>>(false);
};

/// The row that runs `args` on `group`: the forced one if it supports the case (else one warning
/// for this `forced`, and the best), otherwise the supporting row of least cost. Groups of one rank
/// always run "self". There is one for every valid argument. Equal on all ranks.
const Algorithm& choose(const CollectiveArgs& args, Group& group, const ForcedAlgorithms& forced);

}  // namespace allring
