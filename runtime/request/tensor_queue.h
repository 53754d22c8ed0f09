#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectives/base/status.h"
#include "runtime/request/request.h"

namespace allring {

/// The way from caller threads to the coordinator of a process set, and the record of which names
/// are in flight: from push() until complete(). Thread-safe.
class TensorQueue {
 public:
  /// @param wake tells the coordinator that there is something to take. Called under the lock, so
  ///        never again once close() has returned; must not block or call back.
  explicit TensorQueue(std::function<void()> wake);

  /// Queues all of them or none; the members of one group come in one push, so that the coordinator
  /// takes them together. Takes a short lock and does not block. On failure `done` is not called.
  /// @return kInvalidArgument naming the tensor whose name is in flight already (or twice in this
  ///         push), or what close() was given.
  Status push(std::vector<Submission> submissions);

  /// What was pushed since the last call, in order. Does not block.
  std::vector<Submission> take();

  /// Frees the name, then calls done. Exactly once for each submission that was pushed.
  void complete(Submission submission, Completion completion);

  /// Makes later pushes fail with `reason`; the first reason stays. What was pushed before can
  /// still be taken.
  void close(Status reason);

  /// allreduce "a", ...: everything pushed and not complete, in no order, for messages.
  std::vector<std::string> in_flight() const;

 private:
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::vector<Submission> waiting_;
  std::unordered_map<std::string, CollectiveKind> in_flight_;
  Status closed_;
};

}  // namespace allring
