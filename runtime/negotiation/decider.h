#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "runtime/negotiation/readiness.h"
#include "runtime/negotiation/response_cache.h"
#include "runtime/negotiation/stall_inspector.h"
#include "runtime/request/message.h"

namespace allring {

/// The root's mind: takes what ranks announce and says what all do next. A pure state machine: no
/// I/O, no clock, no thread; the same calls give the same decisions. Thread-compatible.
class Decider {
 public:
  struct Settings {
    /// members[i] is the rank in the job of the group's rank i; for messages.
    std::vector<Rank> members;
    /// "rank 3 (host b)", likewise indexed by the group's rank.
    std::vector<std::string> descriptions;
    std::size_t cache_capacity = 65536;
    FusionLimits fusion;
    StallLimits stall;
  };

  explicit Decider(Settings settings);

  /// Takes in one rank's announcement.
  /// @return kInternal if it contradicts what that rank said before: a fault of its coordinator.
  Status announce(const Announcement& announcement, TimePoint now);

  /// Whether decide() has something to say.
  bool has_ready() const { return !ready_.empty(); }
  /// Input bytes per rank of what is ready: for deciding whether waiting for more is worth it.
  std::int64_t ready_bytes() const { return ready_bytes_; }

  /// Everything that is ready, in the order in which it became ready. REQUIRES: has_ready().
  Decision decide();

  /// Changes the limits of fusion from the next decision on.
  void set_fusion(FusionLimits limits);

  /// When check_stalls() is due; TimePoint::max() if nothing waits.
  TimePoint next_check() const { return stalls_.next_check(); }
  /// What has waited too long for some ranks becomes an error, to be sent by decide().
  /// @return warnings to be logged.
  std::vector<std::string> check_stalls(TimePoint now);

 private:
  /// A name that failed before some ranks announced it: they get the same error when they do.
  struct Overdue {
    StatusCode code;
    std::string message;
    RankSet missing;
  };
  /// What a reused number meant to ranks that have not seen decision `sequence`.
  struct Retired {
    CacheId id;
    std::uint64_t sequence;
    ResponseCache::Entry entry;
  };
  struct ReadyResponse {
    std::string name;
    Request request;  // of the root's place: for the cache
    std::vector<std::int64_t> sizes;
  };
  using Ready = std::variant<CacheId, ReadyResponse, Rejection>;

  Status announce_cached(Rank rank, CacheId id, std::uint64_t seen, TimePoint now);
  Status announce_full(Rank rank, const Request& request, TimePoint now);
  /// True if `name` had failed before this rank came, which therefore fails too.
  bool came_too_late(Rank rank, const std::string& name);
  Status after_announcement(PendingTensor* tensor, Rank rank, const std::string& name);
  void settle(PendingTensor& tensor);
  void accept(PendingTensor& tensor);
  void reject(const std::vector<PendingTensor*>& tensors, StatusCode code,
              const std::string& message);
  void write_response(ReadyResponse& ready, Decision* decision);
  void forget_retired();

  Settings settings_;
  int size_;
  Readiness readiness_;
  ResponseCache cache_;
  CacheIds ids_;
  StallInspector stalls_;
  std::vector<Ready> ready_;
  std::int64_t ready_bytes_ = 0;
  std::unordered_map<std::string, Overdue> overdue_;
  std::deque<Retired> retired_;  // by sequence
  std::vector<std::uint64_t> seen_;
  std::uint64_t sequence_ = 0;
  bool fusion_changed_ = true;
};

}  // namespace allring
