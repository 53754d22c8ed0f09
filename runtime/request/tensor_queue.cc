#include "runtime/request/tensor_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "collectives/base/check.h"
#include "runtime/request/request_text.h"

namespace allring {

TensorQueue::TensorQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

Status TensorQueue::push(std::vector<Submission> submissions) {
  if (submissions.empty()) return {};
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return closed_;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    const Request& request = submissions[i].request;
    if (in_flight_.emplace(request.name, request.kind).second) continue;
    Status refusal = Status::invalid_argument(
        tensor_text(request) + ": a tensor of this name is in flight on this rank; wait for it, " +
        "or give each tensor its own name");
    for (std::size_t j = 0; j < i; ++j) in_flight_.erase(submissions[j].request.name);
    return refusal;
  }
  const bool was_empty = waiting_.empty();
  std::move(submissions.begin(), submissions.end(), std::back_inserter(waiting_));
  // Otherwise whoever pushed first has woken the coordinator, which has not come by since.
  if (was_empty) wake_();
  return {};
}

std::vector<Submission> TensorQueue::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

void TensorQueue::complete(Submission submission, Completion completion) {
  {
    std::lock_guard lock(mutex_);
    const std::size_t erased = in_flight_.erase(submission.request.name);
    ALLRING_CHECK(erased == 1, "a tensor is completed once");
  }
  submission.done(std::move(completion));
}

void TensorQueue::close(Status reason) {
  std::lock_guard lock(mutex_);
  if (closed_.ok()) closed_ = std::move(reason);
}

std::vector<std::string> TensorQueue::in_flight() const {
  std::vector<std::string> tensors;
  std::lock_guard lock(mutex_);
  for (const auto& [name, kind] : in_flight_)
    tensors.push_back(std::string(collective_kind_name(kind)) + " \"" + name + "\"");
  std::sort(tensors.begin(), tensors.end());
  return tensors;
}

}  // namespace allring
