#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "collectives/base/status.h"
#include "runtime/request/request.h"

namespace allring {

/// What a handle stands for: one tensor or a group, under way or done. Thread-safe.
class Operation {
 public:
  /// @param outputs of each member, where the caller gave one.
  Operation(CollectiveKind kind, std::vector<void*> outputs);

  CollectiveKind kind() const { return kind_; }
  int members() const { return static_cast<int>(outputs_.size()); }

  /// For Submission::done of a member. The first failure becomes the failure of the whole.
  void finish(int member, Completion completion);

  bool done() const;
  /// Blocks until done, at most `timeout_ms` (negative: for ever).
  /// @return the status of the collective; nothing if the time has passed.
  std::optional<Status> wait(std::int64_t timeout_ms);

  /// What a member has become; valid as long as this is. REQUIRES: done, and well.
  struct Output {
    void* data;
    const Completion* completion;
  };
  Output output(int member) const;

 private:
  const CollectiveKind kind_;
  const std::vector<void*> outputs_;
  mutable std::mutex mutex_;
  std::condition_variable finished_;
  int unfinished_;
  Status status_;
  std::vector<Completion> completions_;
};

/// Handles and their operations. A number is never given twice. Thread-safe.
class HandleTable {
 public:
  std::int64_t add(std::shared_ptr<Operation> operation);
  /// @return kInvalidArgument if the handle is unknown.
  Result<std::shared_ptr<Operation>> find(std::int64_t handle) const;
  Status release(std::int64_t handle);

 private:
  mutable std::mutex mutex_;
  std::int64_t next_ = 1;
  std::unordered_map<std::int64_t, std::shared_ptr<Operation>> operations_;
};

}  // namespace allring
