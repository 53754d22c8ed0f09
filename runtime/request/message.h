#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "runtime/request/request.h"

namespace allring {

// What the coordinators of a group say to each other. Ranks in messages are places in the group.
// "Up" travels from a rank towards the root, "down" from the root to all.

/// Names a remembered tensor: its place in the response cache, the same on all ranks.
using CacheId = std::uint32_t;

/// Up: what the callers of one rank have submitted since its last announcement.
struct Announcement {
  Rank rank = 0;
  /// The sequence of the latest decision that this rank has carried out: it tells which meaning of
  /// a reused CacheId it has in mind.
  std::uint64_t seen = 0;
  /// Tensors that are remembered and unchanged. Ascending.
  std::vector<CacheId> cached;
  /// All others, and members of one group always within one announcement.
  std::vector<Request> requests;

  bool operator==(const Announcement&) const = default;
};

/// A tensor that all ranks have ready, and what a rank cannot know of the others.
struct Response {
  std::string name;
  /// Remember it under this number, in place of what was there.
  std::optional<CacheId> remember;
  /// allgather: rows of each rank. alltoall: rows from each rank (major) for each rank.
  std::vector<std::int64_t> sizes;

  bool operator==(const Response&) const = default;
};

/// Tensors that cannot be done: those ranks that have submitted them fail them with `status`.
struct Rejection {
  StatusCode code = StatusCode::kMismatch;
  std::string message;
  std::vector<std::string> names;
  /// Whom it concerns; empty: everybody.
  std::vector<Rank> ranks;

  bool operator==(const Rejection&) const = default;
};

/// How responses become batches; the root's settings hold for all.
struct FusionLimits {
  std::int64_t threshold_bytes = 0;  ///< of one batch; 0 turns fusion off
  std::int64_t tensor_bytes = 0;     ///< larger tensors stay alone within a host

  bool operator==(const FusionLimits&) const = default;
};

/// Tensors that all ranks have ready and unchanged, in the order in which to run them.
using CachedRun = std::vector<CacheId>;
using DecisionEntry = std::variant<CachedRun, Response, Rejection>;

/// Down: what to do next, in this order, on every rank.
struct Decision {
  std::uint64_t sequence = 0;          ///< 1, 2, ...
  std::optional<FusionLimits> limits;  ///< from this decision on
  std::vector<DecisionEntry> entries;

  bool operator==(const Decision&) const = default;
};

/// Up: something has failed on `rank` that stops the whole group.
struct FailureReport {
  Rank rank = 0;
  Status status;
};

/// Down: everything that is pending fails with `status`, and nothing can follow.
struct Abort {
  Status status;
};

/// Up: the program of `rank` wants to leave.
struct Leave {
  Rank rank = 0;
};

/// Down: `rank` leaves; what was decided before is still carried out, nothing else is.
struct Stop {
  Rank rank = 0;
};

/// Up: after Stop, `rank` has carried out all that was decided.
struct Drained {
  Rank rank = 0;
};

/// Down: all ranks are drained; connections may be closed.
struct Closed {};

using ControlMessage =
    std::variant<Announcement, Decision, FailureReport, Abort, Leave, Stop, Drained, Closed>;

}  // namespace allring
