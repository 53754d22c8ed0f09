#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collectives/base/clock.h"
#include "runtime/negotiation/consistency.h"
#include "runtime/negotiation/rank_set.h"
#include "runtime/negotiation/response_cache.h"
#include "runtime/request/message.h"

namespace allring {

/// A tensor that at least one rank has announced and that is not decided.
struct PendingTensor {
  explicit PendingTensor(int size) : announced(size) {}

  std::string name;
  CollectiveKind kind = CollectiveKind::kAllreduce;
  std::string group;            ///< as the first rank has it
  std::int32_t group_size = 0;  ///< likewise
  std::int64_t bytes = 0;       ///< of the input of the first rank
  RankSet announced;
  TimePoint since;
  bool warned = false;
  bool ready = false;  ///< announced by all ranks; may still wait for its group

  /// Set while every rank so far has announced it by this number, as remembered.
  std::optional<CacheId> id;
  /// Otherwise: who submitted what. One faction: all agree.
  std::vector<Faction> factions;
  std::vector<std::int64_t> sizes;  ///< as in Response
};

/// Which ranks have announced which tensor: the table that the root keeps. Grouped tensors become
/// ready together. Pure; thread-compatible.
class Readiness {
 public:
  explicit Readiness(int size) : size_(size) {}

  /// Records that `rank` has submitted what `entry` remembers under `id`, which is its present
  /// meaning.
  /// @return null if this rank has announced it before (its coordinator is at fault).
  PendingTensor* announce(Rank rank, CacheId id, const ResponseCache::Entry& entry, TimePoint now);
  /// The same in full. @param entry what the name is remembered as, or null.
  PendingTensor* announce(Rank rank, const Request& request, const ResponseCache::Entry* entry,
                          TimePoint now);

  /// The tensors that can be decided now that `tensor` is ready on all ranks: itself; or nothing
  /// while its group is incomplete; or the whole group, in order of announcement. Call it once for
  /// each tensor that all ranks have announced. If ranks disagree about it, the result is all that
  /// has to fail with it: itself and the known members of each group that it belongs to.
  std::vector<PendingTensor*> settle(PendingTensor& tensor);

  /// The tensors that fail if `tensor` does: itself and the known members of its groups.
  std::vector<PendingTensor*> fate_of(PendingTensor& tensor);

  /// Null if no rank has announced it.
  PendingTensor* find(std::string_view name);

  /// Removes it.
  std::unique_ptr<PendingTensor> take(PendingTensor& tensor);

  /// Everything that waits, in no order.
  std::vector<PendingTensor*> pending();
  bool empty() const { return tensors_.empty(); }

 private:
  struct Group {
    std::vector<PendingTensor*> members;  // known so far, in order of announcement; null: taken
    std::size_t first = 0;                // before it all are taken
    int ready = 0;
  };

  PendingTensor& add(const Request& first, TimePoint now);
  void join_faction(PendingTensor& tensor, Rank rank, const Request& request);
  void join_group(PendingTensor& tensor, const std::string& group);
  void leave_group(PendingTensor& tensor, const std::string& group);

  int size_;
  std::unordered_map<std::string_view, std::unique_ptr<PendingTensor>>
      tensors_;                        // keys: their names
  std::vector<PendingTensor*> by_id_;  // a shortcut past the names
  std::unordered_map<std::string, Group> groups_;
};

}  // namespace allring
