#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/execution/lane.h"
#include "runtime/negotiation/controller.h"
#include "runtime/request/tensor_queue.h"

namespace allring {

/// Carries out what was decided: plans batches, hands them to the lanes, and completes their
/// tensors. Every rank gives the same batches the same numbers and lanes. run(), take_failed() and
/// abort() belong to the coordinator thread.
class Executor {
 public:
  struct Settings {
    ForcedAlgorithms forced;
    std::shared_ptr<Strategy> strategy;
    /// Smaller batches pay where copying is cheap.
    bool single_host = true;
  };

  /// A batch that a lane could not do. Its tensors are not complete: why they failed is for the
  /// group to agree on.
  struct Failed {
    std::vector<BatchTensor> tensors;
    Status status;
  };

  /// @param networks one for each lane.
  /// @param queue completes the tensors that are done; outlives this.
  /// @param wake wakes the coordinator; called on lanes' threads.
  static std::unique_ptr<Executor> start(Settings settings,
                                         std::vector<std::unique_ptr<LaneNetwork>> networks,
                                         TensorQueue& queue, std::function<void()> wake);

  /// Does not block. The lanes complete the tensors.
  void run(Decided decided);

  int lanes() const { return static_cast<int>(lanes_.size()); }
  /// Batches that are queued or under way.
  int outstanding() const { return outstanding_.load(); }
  /// Each lane has a batch under way and another one queued, on average.
  bool busy() const { return outstanding() >= busy_threshold(); }
  int busy_threshold() const { return 2 * lanes(); }
  /// From now on the coordinator is woken when outstanding() falls below `count` (0: never).
  void wake_when_below(int count) { wake_below_.store(count); }

  /// Those that failed since the last call; the coordinator was woken for each.
  std::vector<Failed> take_failed();

  /// Ends everything that is queued or under way, as failed. Thread-safe.
  void abort(const Status& reason) noexcept;

  /// Joins the lanes and closes their networks; abort() first where peers may not come.
  /// take_failed() still works.
  void stop() { lanes_.clear(); }

 private:
  Executor(Settings settings, TensorQueue& queue, std::function<void()> wake);
  void finished(Batch batch, Status status);

  Settings settings_;
  TensorQueue& queue_;
  std::function<void()> wake_;
  std::uint64_t next_batch_ = 0;
  std::atomic<int> outstanding_{0};
  std::atomic<int> wake_below_{0};
  std::mutex mutex_;
  std::vector<Failed> failed_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace allring
