#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/request/message.h"
#include "runtime/request/request.h"

namespace allring {

/// What a group has agreed about tensors before, so that repeating it takes one bit per tensor
/// instead of a request. Every rank keeps one. The root's decisions say what to remember under
/// which number, and all ranks carry out the same decisions in the same order, so a number means
/// the same tensor on every rank that has seen the same decisions. Entries differ between ranks
/// only in what may differ: each holds its own request. Thread-compatible.
class ResponseCache {
 public:
  struct Entry {
    Request request;                  ///< as this rank submitted it
    std::vector<std::int64_t> sizes;  ///< of all ranks, see Response
  };

  /// Null if `name` is not remembered.
  const Entry* find(std::string_view name, CacheId* id = nullptr) const;
  /// Null if nothing is remembered under `id`.
  const Entry* at(CacheId id) const;

  /// Remembers under `id` in place of what was there and of what had that name.
  void remember(CacheId id, Request request, std::vector<std::int64_t> sizes);

  std::size_t size() const { return by_name_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::vector<std::optional<Entry>> slots_;
  std::unordered_map<std::string, CacheId, Hash, std::equal_to<>> by_name_;
};

/// The request that `rank` must have submitted for what `entry` (of any rank) remembers: entries
/// hold the sizes of all.
Request remembered_request(const ResponseCache::Entry& entry, Rank rank, int size);

/// The root's choice of numbers: one for each remembered tensor, and the one used longest ago is
/// given up when all are taken. Thread-compatible.
class CacheIds {
 public:
  /// @param capacity how many numbers there are; 0: nothing is remembered.
  explicit CacheIds(std::size_t capacity) : capacity_(capacity) {}

  /// The number for the next tensor that is not remembered yet: a fresh one, or that of the tensor
  /// used longest ago among those not pinned. Empty if there is none.
  std::optional<CacheId> choose();

  /// Marks as used now.
  void touch(CacheId id);
  /// A pinned number is not given up; pins are counted.
  void pin(CacheId id) { ++slots_[id].pins; }
  void unpin(CacheId id) { --slots_[id].pins; }

 private:
  struct Slot {
    std::list<CacheId>::iterator place;
    int pins = 0;
  };
  std::size_t capacity_;
  std::vector<Slot> slots_;
  std::list<CacheId> by_use_;  // longest ago first
};

}  // namespace allring
