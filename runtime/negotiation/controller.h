#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "runtime/negotiation/control_channel.h"
#include "runtime/negotiation/decider.h"
#include "runtime/negotiation/rank_set.h"
#include "runtime/negotiation/response_cache.h"
#include "runtime/request/message.h"

namespace allring {

/// A tensor that all ranks have ready, with this rank's memory.
struct Agreed {
  Submission submission;
  std::vector<std::int64_t> sizes;  ///< see Response
};

/// To be planned and run in this order; the same on every rank.
struct Decided {
  std::vector<Agreed> tensors;
  FusionLimits limits;
};
/// Failed by itself; everything else goes on.
struct Refused {
  Submission submission;
  Status status;
};
/// The group has failed for good: what is under way must be ended, what is pending fails.
struct Aborted {
  Status status;
  std::vector<Submission> pending;
};
/// A rank leaves: what was decided is still to be finished, what is pending fails.
struct Stopped {
  Status status;
  std::vector<Submission> pending;
};
using Outcome = std::variant<Decided, Refused, Aborted, Stopped>;

/// One rank's part in the negotiation of a process set: tells the root what this rank's callers
/// submitted, and makes of the root's messages what is to be done here. On the root it feeds the
/// Decider and sends its decisions to all. Works over any tree of links: inner ranks pass on what
/// is not theirs.
///
/// Never blocks and reads no clock. Belongs to the coordinator thread.
class Controller {
 public:
  struct Settings {
    std::uint32_t epoch = 0;
    Decider::Settings group;
    /// How long a failure seen here waits for the root's word, so that all ranks say the same.
    nanoseconds failure_grace = seconds(5);
    /// How long leaving waits for the others to finish what was decided.
    nanoseconds leave_timeout = seconds(30);
    /// How long leaving after a failure waits for the others to have heard of it.
    nanoseconds linger = seconds(2);
  };

  Controller(ControlChannel& channel, Settings settings, TimePoint now);

  /// Announces what callers submitted. REQUIRES: open().
  void submit(std::vector<Submission> submissions, TimePoint now);
  /// Takes in what the channel brought.
  void handle(ControlEvent event, TimePoint now);
  /// A batch has failed on this rank, which no other rank may know: ends the group.
  void report_failure(const Status& status, TimePoint now);
  /// All that was handed out as Decided is done; matters once the group has stopped or failed.
  void report_drained();
  /// This rank's program wants to leave. Orderly if the group is well.
  void leave(TimePoint now);

  /// Does what is due: decisions (held back while `lanes_busy` unless they fill a batch, so that
  /// small tensors gather while there is other work), stalls, deadlines.
  void advance(TimePoint now, bool lanes_busy);
  /// When advance() is due even if nothing happens.
  TimePoint next_deadline() const;
  /// Decisions wait for the lanes.
  bool holding() const { return holding_; }

  /// What to do on this rank, in order, since the last call.
  std::vector<Outcome> take_outcomes();

  /// Whether the group still takes submissions.
  bool open() const { return state_ == State::kOpen; }
  /// After leave(): nobody needs this rank any more, or it has waited long enough.
  bool finished(TimePoint now) const;

 private:
  enum class State {
    kOpen,
    kStopping,  ///< a rank leaves; batches are being finished
    kClosed,    ///< and all are
    kAborted,
  };

  bool root() const { return channel_.parent() < 0; }
  void to_parent(const ControlMessage& message);
  void to_children(const ControlMessage& message);
  void to_children(std::span<const std::byte> bytes);

  void on_message(Rank from, std::span<const std::byte> bytes);
  void on_message_from_below(ControlMessage message, std::span<const std::byte> bytes);
  void on_message_from_above(ControlMessage message, std::span<const std::byte> bytes);
  void on_lost(Rank peer, const Status& reason);
  void on_leave(Rank rank);
  void on_drained(Rank rank);

  void announce(const Announcement& announcement);
  void fail(const Status& status);
  void decide();
  void carry_out(const Decision& decision);
  std::optional<Submission> take_pending(const std::string& name);
  void stop(Rank rank);
  void abort(const Status& status);
  void close();
  std::vector<Submission> take_all_pending();
  Status failure_of(Rank rank, const Status& status) const;
  Status loss_of(Rank rank, const std::string& how) const;

  ControlChannel& channel_;
  Settings settings_;
  Rank rank_;
  std::optional<Decider> decider_;  // on the root
  ResponseCache cache_;
  std::unordered_map<std::string, Submission> pending_;  // announced, not decided
  std::vector<Outcome> outcomes_;
  FusionLimits limits_;
  std::uint64_t carried_out_ = 0;
  bool holding_ = false;

  State state_ = State::kOpen;
  RankSet drained_;  // as far as they have passed here
  RankSet lost_;
  bool leaving_ = false;
  TimePoint leave_deadline_ = TimePoint::max();
  Status own_failure_;
  TimePoint failure_deadline_ = TimePoint::max();
  TimePoint now_;  // of the call under way
};

}  // namespace allring
