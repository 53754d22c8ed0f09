#include "runtime/negotiation/controller.h"

#include <algorithm>
#include <utility>

#include "collectives/base/check.h"
#include "collectives/base/log.h"
#include "runtime/request/request_text.h"
#include "runtime/request/wire.h"

namespace allring {

Controller::Controller(ControlChannel& channel, Settings settings, TimePoint now)
    : channel_(channel),
      settings_(std::move(settings)),
      rank_(channel.rank()),
      limits_(settings_.group.fusion),
      drained_(channel.size()),
      lost_(channel.size()),
      now_(now) {
  if (root()) decider_.emplace(settings_.group);
}

// ---- to the others
// -------------------------------------------------------------------------------

void Controller::to_parent(const ControlMessage& message) {
  channel_.send(channel_.parent(), encode(settings_.epoch, message));
}

void Controller::to_children(const ControlMessage& message) {
  if (!channel_.children().empty()) to_children(encode(settings_.epoch, message));
}

void Controller::to_children(std::span<const std::byte> bytes) {
  for (Rank child : channel_.children()) channel_.send(child, bytes);
}

// ---- what this rank's callers and lanes say
// --------------------------------------------------------

void Controller::submit(std::vector<Submission> submissions, TimePoint now) {
  now_ = now;
  if (submissions.empty()) return;
  ALLRING_CHECK(open(), "nothing is submitted to a group that has ended");
  Announcement announcement;
  announcement.rank = rank_;
  announcement.seen = carried_out_;
  for (Submission& submission : submissions) {
    const Request& request = submission.request;
    CacheId id = 0;
    const ResponseCache::Entry* entry = cache_.find(request.name, &id);
    if (entry != nullptr && entry->request == request) {
      announcement.cached.push_back(id);
    } else {
      announcement.requests.push_back(request);
    }
    std::string name = request.name;
    pending_.emplace(std::move(name), std::move(submission));
  }
  std::sort(announcement.cached.begin(), announcement.cached.end());
  if (root()) {
    announce(announcement);
  } else {
    to_parent(announcement);
  }
}

void Controller::report_failure(const Status& status, TimePoint now) {
  now_ = now;
  fail(status);
}

void Controller::fail(const Status& status) {
  if (state_ != State::kOpen && state_ != State::kStopping) return;
  if (root()) {
    abort(failure_of(rank_, status));
  } else if (own_failure_.ok()) {
    own_failure_ = failure_of(rank_, status);
    failure_deadline_ = now_ + settings_.failure_grace;
    to_parent(FailureReport{rank_, status});
  }
}

void Controller::report_drained() {
  if (state_ == State::kOpen || drained_.contains(rank_)) return;
  on_drained(rank_);
  if (!root()) to_parent(Drained{rank_});
}

void Controller::leave(TimePoint now) {
  now_ = now;
  if (std::exchange(leaving_, true)) return;
  leave_deadline_ = now + (state_ == State::kAborted ? settings_.linger : settings_.leave_timeout);
  if (state_ != State::kOpen) return;
  if (root()) {
    on_leave(rank_);
  } else {
    to_parent(Leave{rank_});
  }
}

// ---- what the others say
// ---------------------------------------------------------------------------

void Controller::handle(ControlEvent event, TimePoint now) {
  now_ = now;
  if (event.kind == ControlEvent::Kind::kMessage) {
    on_message(event.peer, event.bytes);
  } else if (event.kind == ControlEvent::Kind::kPeerLost) {
    on_lost(event.peer, loss_of(event.peer, event.reason.message()));
  }
}

void Controller::on_message(Rank from, std::span<const std::byte> bytes) {
  Result<Envelope> envelope = decode(bytes);
  if (!envelope.ok()) {
    fail(envelope.status().with_prefix("from " + settings_.group.descriptions[from] + ": "));
    return;
  }
  if (envelope->epoch != settings_.epoch) {
    ALLRING_LOG(kDebug, "dropped a message of epoch " << envelope->epoch << " from "
                                                      << settings_.group.descriptions[from]);
    return;
  }
  if (from == channel_.parent()) {
    on_message_from_above(std::move(envelope->message), bytes);
  } else {
    on_message_from_below(std::move(envelope->message), bytes);
  }
}

void Controller::on_message_from_below(ControlMessage message, std::span<const std::byte> bytes) {
  if (const auto* drained = std::get_if<Drained>(&message);
      drained != nullptr && drained->rank < channel_.size())
    on_drained(drained->rank);
  if (!root()) {
    channel_.send(channel_.parent(), bytes);
    return;
  }
  if (const auto* announcement = std::get_if<Announcement>(&message)) {
    announce(*announcement);
  } else if (const auto* report = std::get_if<FailureReport>(&message)) {
    if (report->rank < channel_.size()) abort(failure_of(report->rank, report->status));
  } else if (const auto* leave = std::get_if<Leave>(&message)) {
    if (leave->rank < channel_.size()) on_leave(leave->rank);
  }
}

void Controller::on_message_from_above(ControlMessage message, std::span<const std::byte> bytes) {
  if (state_ == State::kClosed || state_ == State::kAborted) return;
  if (const auto* aborted = std::get_if<Abort>(&message)) {
    abort(aborted->status);
    return;
  }
  to_children(bytes);
  if (const auto* decision = std::get_if<Decision>(&message)) {
    carry_out(*decision);
  } else if (const auto* stopped = std::get_if<Stop>(&message)) {
    if (stopped->rank < channel_.size()) stop(stopped->rank);
  } else if (std::holds_alternative<Closed>(message) && state_ == State::kStopping) {
    state_ = State::kClosed;
  }
}

void Controller::on_lost(Rank peer, const Status& reason) {
  if (!lost_.insert(peer) || state_ == State::kClosed || state_ == State::kAborted) return;
  const bool orderly = state_ == State::kStopping;
  if (peer == channel_.parent()) {
    // It goes last; if this rank is done, it may be about to close too. Not if a batch failed here:
    // who waits for its tensors must still be told.
    if (orderly && drained_.contains(rank_) && own_failure_.ok()) {
      state_ = State::kClosed;
    } else {
      abort(reason);
    }
  } else if (!orderly || !drained_.contains(peer)) {
    fail(reason);
  }
}

void Controller::on_leave(Rank rank) {
  if (state_ != State::kOpen) return;
  // What all ranks have ready is still done.
  if (decider_->has_ready()) decide();
  if (state_ != State::kOpen) return;
  to_children(Stop{rank});
  stop(rank);
}

void Controller::on_drained(Rank rank) {
  drained_.insert(rank);
  if (root() && state_ == State::kStopping && drained_.full()) close();
}

// ---- decisions
// -------------------------------------------------------------------------------------

void Controller::announce(const Announcement& announcement) {
  if (state_ != State::kOpen) return;
  if (Status taken = decider_->announce(announcement, now_); !taken.ok()) abort(taken);
}

void Controller::decide() {
  const Decision decision = decider_->decide();
  to_children(decision);
  carry_out(decision);
}

void Controller::carry_out(const Decision& decision) {
  if (decision.sequence != carried_out_ + 1) {
    abort(Status::internal("decision " + std::to_string(decision.sequence) + " came after " +
                           std::to_string(carried_out_)));
    return;
  }
  carried_out_ = decision.sequence;
  if (decision.limits) limits_ = *decision.limits;
  Decided decided;
  decided.limits = limits_;
  bool complete = true;
  auto agree = [&](const std::string& name, const std::vector<std::int64_t>& sizes) {
    std::optional<Submission> submission = take_pending(name);
    complete = complete && submission.has_value();
    if (submission) decided.tensors.push_back({std::move(*submission), sizes});
  };
  for (const DecisionEntry& entry : decision.entries) {
    if (const auto* run = std::get_if<CachedRun>(&entry)) {
      for (CacheId id : *run) {
        const ResponseCache::Entry* remembered = cache_.at(id);
        complete = complete && remembered != nullptr;
        if (remembered != nullptr) agree(remembered->request.name, remembered->sizes);
      }
    } else if (const auto* response = std::get_if<Response>(&entry)) {
      agree(response->name, response->sizes);
      if (response->remember && complete)
        cache_.remember(*response->remember, decided.tensors.back().submission.request,
                        response->sizes);
    } else {
      const Rejection& rejection = std::get<Rejection>(entry);
      const bool for_me =
          rejection.ranks.empty() ||
          std::find(rejection.ranks.begin(), rejection.ranks.end(), rank_) != rejection.ranks.end();
      for (const std::string& name : rejection.names)
        if (std::optional<Submission> submission; for_me && (submission = take_pending(name)))
          outcomes_.emplace_back(
              Refused{std::move(*submission), Status(rejection.code, rejection.message)});
    }
  }
  if (!decided.tensors.empty()) outcomes_.emplace_back(std::move(decided));
  if (!complete)
    fail(Status::internal("decision " + std::to_string(decision.sequence) +
                          " is about tensors that this rank does not have"));
}

std::optional<Submission> Controller::take_pending(const std::string& name) {
  auto taken = pending_.extract(name);
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped());
}

std::vector<Submission> Controller::take_all_pending() {
  std::vector<Submission> all;
  for (auto& [name, submission] : pending_) all.push_back(std::move(submission));
  pending_.clear();
  return all;
}

// ---- ends
// ------------------------------------------------------------------------------------------

void Controller::stop(Rank rank) {
  state_ = State::kStopping;
  holding_ = false;
  outcomes_.emplace_back(Stopped{
      Status::aborted(settings_.group.descriptions[rank] +
                      " has shut down in an orderly way (its program called shutdown or ended), " +
                      "so no further collectives are possible"),
      take_all_pending()});
}

void Controller::abort(const Status& status) {
  if (state_ == State::kClosed || state_ == State::kAborted) return;
  state_ = State::kAborted;
  holding_ = false;
  failure_deadline_ = TimePoint::max();
  if (leaving_) leave_deadline_ = std::min(leave_deadline_, now_ + settings_.linger);
  to_children(Abort{status});
  outcomes_.emplace_back(Aborted{status, take_all_pending()});
}

void Controller::close() {
  state_ = State::kClosed;
  to_children(Closed{});
}

Status Controller::loss_of(Rank rank, const std::string& how) const {
  const std::string& who = settings_.group.descriptions[rank];
  return Status::peer_lost(settings_.group.members[rank],
                           how.find(who) == std::string::npos ? who + " was lost: " + how : how);
}

// A rank's lane may name a lost peer by its number only; everybody is to hear the host too.
Status Controller::failure_of(Rank rank, const Status& status) const {
  const std::vector<Rank>& members = settings_.group.members;
  if (status.code() == StatusCode::kPeerLost && status.lost_rank()) {
    const auto lost = std::find(members.begin(), members.end(), *status.lost_rank());
    if (lost != members.end())
      return loss_of(static_cast<Rank>(lost - members.begin()), status.message());
    return status;
  }
  return status.with_prefix(settings_.group.descriptions[rank] + ": ");
}

// ---- time
// ------------------------------------------------------------------------------------------

void Controller::advance(TimePoint now, bool lanes_busy) {
  now_ = now;
  if (state_ == State::kClosed || state_ == State::kAborted) return;
  if (now >= failure_deadline_) {
    abort(own_failure_);
    return;
  }
  if (now >= leave_deadline_) {
    abort(Status::timed_out(settings_.group.descriptions[rank_] +
                            " left without waiting any longer for the others to finish"));
    return;
  }
  if (!decider_ || state_ != State::kOpen) return;
  for (const std::string& warning : decider_->check_stalls(now)) ALLRING_LOG(kWarning, warning);
  holding_ = decider_->has_ready() && lanes_busy &&
             decider_->ready_bytes() < std::max<std::int64_t>(limits_.threshold_bytes, 1);
  if (decider_->has_ready() && !holding_) decide();
}

TimePoint Controller::next_deadline() const {
  TimePoint next = std::min(failure_deadline_, leave_deadline_);
  if (decider_ && state_ == State::kOpen) next = std::min(next, decider_->next_check());
  return next;
}

std::vector<Outcome> Controller::take_outcomes() { return std::exchange(outcomes_, {}); }

bool Controller::finished(TimePoint now) const {
  if (!leaving_) return false;
  if (state_ == State::kClosed || now >= leave_deadline_) return true;
  if (state_ != State::kAborted) return false;
  // Those who have not heard of the failure must hear of it from here.
  return std::all_of(channel_.children().begin(), channel_.children().end(), [this](Rank child) {
    return drained_.contains(child) || lost_.contains(child);
  });
}

}  // namespace allring
