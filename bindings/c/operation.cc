#include "bindings/c/operation.h"

#include <chrono>
#include <string>
#include <utility>

namespace allring {

namespace {

Status unknown(std::int64_t handle) {
  return Status::invalid_argument("handle " + std::to_string(handle) +
                                  " is unknown: it was released, or never given");
}

}  // namespace

Operation::Operation(CollectiveKind kind, std::vector<void*> outputs)
    : kind_(kind),
      outputs_(std::move(outputs)),
      unfinished_(static_cast<int>(outputs_.size())),
      completions_(outputs_.size()) {}

void Operation::finish(int member, Completion completion) {
  std::lock_guard lock(mutex_);
  if (status_.ok()) status_ = completion.status;
  completions_[member] = std::move(completion);
  if (--unfinished_ == 0) finished_.notify_all();
}

bool Operation::done() const {
  std::lock_guard lock(mutex_);
  return unfinished_ == 0;
}

std::optional<Status> Operation::wait(std::int64_t timeout_ms) {
  std::unique_lock lock(mutex_);
  const auto done = [this] { return unfinished_ == 0; };
  // Longer than the clock can count is for ever.
  constexpr std::int64_t kLongest = std::int64_t{1000} * 3600 * 24 * 365;
  if (timeout_ms < 0 || timeout_ms > kLongest) {
    finished_.wait(lock, done);
  } else if (!finished_.wait_for(lock, std::chrono::milliseconds(timeout_ms), done)) {
    return std::nullopt;
  }
  return status_;
}

Operation::Output Operation::output(int member) const {
  std::lock_guard lock(mutex_);
  const Completion& completion = completions_[member];
  return {completion.allocated ? completion.allocated.get() : outputs_[member], &completion};
}

std::int64_t HandleTable::add(std::shared_ptr<Operation> operation) {
  std::lock_guard lock(mutex_);
  operations_.emplace(next_, std::move(operation));
  return next_++;
}

Result<std::shared_ptr<Operation>> HandleTable::find(std::int64_t handle) const {
  std::lock_guard lock(mutex_);
  const auto found = operations_.find(handle);
  if (found == operations_.end()) return unknown(handle);
  return found->second;
}

Status HandleTable::release(std::int64_t handle) {
  std::shared_ptr<Operation> released;  // its memory is freed without the lock
  std::lock_guard lock(mutex_);
  const auto found = operations_.find(handle);
  if (found == operations_.end()) return unknown(handle);
  released = std::move(found->second);
  operations_.erase(found);
  return {};
}

}  // namespace allring
