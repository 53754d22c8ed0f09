#pragma once

#include <deque>
#include <mutex>
#include <utility>

namespace allring {

/// Messages on their way into one gRPC stream, which takes one at a time. Thread-safe.
template <typename Message>
class MessageQueue {
 public:
  /// Appends a message. @return what the caller must now give to StartWrite, or nullptr if a write
  /// is under way or the queue is closed.
  const Message* push(Message message) {
    std::lock_guard lock(mutex_);
    if (closed_) return nullptr;
    messages_.push_back(std::move(message));
    if (writing_) return nullptr;
    writing_ = true;
    return &messages_.front();
  }

  /// The message being written has been written. @return the next to write, or nullptr.
  const Message* written() {
    std::lock_guard lock(mutex_);
    messages_.pop_front();
    writing_ = !messages_.empty();
    return writing_ ? &messages_.front() : nullptr;
  }

  /// Later messages are dropped. @return whether nothing is being written; else the call of
  /// written() that returns nullptr comes when everything is out.
  bool close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    return !writing_;
  }

  bool closed() {
    std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  std::mutex mutex_;
  std::deque<Message> messages_;
  bool writing_ = false;
  bool closed_ = false;
};

}  // namespace allring
