#include "runtime/core/cycle.h"

#include <algorithm>
#include <utility>

#include "runtime/request/request_text.h"

namespace allring {

namespace {

Status with_suffix(const Status& status, const std::string& suffix) {
  if (status.code() == StatusCode::kPeerLost && status.lost_rank())
    return Status::peer_lost(*status.lost_rank(), status.message() + suffix);
  return Status(status.code(), status.message() + suffix);
}

std::string in_flight_text(const std::vector<std::string>& tensors) {
  return tensors.empty() ? "" : "; in flight on this rank: " + tensor_list_text(tensors);
}

}  // namespace

Cycle::Cycle(TensorQueue& queue, ControlChannel& channel, Controller& controller,
             Executor& executor, Clock& clock)
    : queue_(queue),
      channel_(channel),
      controller_(controller),
      executor_(executor),
      clock_(clock) {}

void Cycle::run_once(Deadline deadline) {
  listen(std::min(deadline, controller_.next_deadline()));
  // First, as it may have ended the group.
  carry_out_all();
  std::vector<Submission> submitted = queue_.take();
  if (ended_.ok()) {
    controller_.submit(std::move(submitted), clock_.now());
  } else {
    fail(std::move(submitted));
  }
  collect_failures();
  if (leave_requested_.load()) controller_.leave(clock_.now());
  negotiate();
}

// Takes in all that has arrived, so that one decision answers it, but not without end.
void Cycle::listen(Deadline deadline) {
  const int most = 16 + 4 * channel_.size();
  ControlEvent event = channel_.receive(deadline);
  for (int i = 1; event.kind != ControlEvent::Kind::kDeadline; ++i) {
    controller_.handle(std::move(event), clock_.now());
    if (i == most) break;
    event = channel_.receive(TimePoint());
  }
}

void Cycle::negotiate() {
  while (true) {
    controller_.advance(clock_.now(), executor_.busy());
    carry_out_all();
    // A lane that gets done from here on wakes this thread if that is what the controller waits
    // for.
    const bool over = !controller_.open();
    const int awaited = over ? 1 : controller_.holding() ? executor_.busy_threshold() : 0;
    executor_.wake_when_below(awaited);
    if (executor_.outstanding() >= awaited) return;
    if (!over) continue;
    // Those that failed are held until the group has agreed, and are not under way any more.
    collect_failures();
    controller_.report_drained();
    return;
  }
}

void Cycle::collect_failures() {
  for (Executor::Failed& failed : executor_.take_failed()) {
    controller_.report_failure(failed.status, clock_.now());
    for (BatchTensor& tensor : failed.tensors) held_.push_back(std::move(tensor.submission));
  }
  if (aborted_) fail(std::exchange(held_, {}));
}

void Cycle::carry_out_all() {
  for (Outcome& outcome : controller_.take_outcomes()) carry_out(std::move(outcome));
}

void Cycle::carry_out(Outcome outcome) {
  if (auto* decided = std::get_if<Decided>(&outcome)) {
    executor_.run(std::move(*decided));
  } else if (auto* refused = std::get_if<Refused>(&outcome)) {
    queue_.complete(std::move(refused->submission), {refused->status, {}, {}, {}});
  } else if (auto* aborted = std::get_if<Aborted>(&outcome)) {
    const Status reason = with_suffix(aborted->status, in_flight_text(queue_.in_flight()));
    executor_.abort(reason);
    aborted_ = true;
    end(reason, std::move(aborted->pending));
  } else {
    auto& stopped = std::get<Stopped>(outcome);
    std::vector<std::string> names;
    for (const Submission& submission : stopped.pending)
      names.push_back(tensor_text(submission.request));
    end(with_suffix(stopped.status, in_flight_text(names)), std::move(stopped.pending));
  }
}

void Cycle::end(const Status& reason, std::vector<Submission> pending) {
  ended_ = reason;  // a failure after an orderly stop replaces it for what is still under way
  queue_.close(reason);
  fail(std::move(pending));
  fail(queue_.take());
  if (aborted_) fail(std::exchange(held_, {}));
}

void Cycle::fail(std::vector<Submission> submissions) {
  for (Submission& submission : submissions)
    queue_.complete(std::move(submission), {ended_, {}, {}, {}});
}

void Cycle::request_leave() {
  leave_requested_.store(true);
  channel_.wake();
}

void Cycle::complete_rest(const Status& otherwise) {
  if (ended_.ok()) ended_ = otherwise;
  aborted_ = true;
  queue_.close(ended_);
  fail(queue_.take());
  collect_failures();
}

}  // namespace allring
