#include "runtime/execution/lane.h"

#include <string>
#include <utility>

#include "collectives/base/thread.h"
#include "runtime/execution/run_batch.h"

namespace allring {

Lane::Lane(std::unique_ptr<LaneNetwork> network, const ForcedAlgorithms& forced,
           std::shared_ptr<Strategy> strategy, Finished finished)
    : network_(std::move(network)),
      communicator_(network_->group(), forced),
      strategy_(std::move(strategy)),
      scratch_(network_->group().arena().arena),
      finished_(std::move(finished)) {}

std::unique_ptr<Lane> Lane::start(int index, std::unique_ptr<LaneNetwork> network,
                                  const ForcedAlgorithms& forced,
                                  std::shared_ptr<Strategy> strategy, Finished finished) {
  std::unique_ptr<Lane> lane(
      new Lane(std::move(network), forced, std::move(strategy), std::move(finished)));
  lane->thread_ =
      start_thread("allring-lane" + std::to_string(index), [lane = lane.get()] { lane->loop(); });
  return lane;
}

Lane::~Lane() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Lane::run(Batch batch) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(batch));
  }
  changed_.notify_one();
}

void Lane::abort(const Status& reason) noexcept {
  {
    std::lock_guard lock(mutex_);
    if (ended_.ok()) ended_ = reason;
  }
  network_->abort(reason);
}

void Lane::loop() {
  while (true) {
    Batch batch;
    Status status;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      batch = std::move(queue_.front());
      queue_.pop_front();
      status = ended_;
    }
    if (status.ok()) {
      status = run_batch(batch, communicator_, *strategy_, scratch_);
      if (!status.ok()) {
        // A transport is of no further use after a failure.
        std::lock_guard lock(mutex_);
        if (ended_.ok())
          ended_ = Status::aborted("an earlier collective failed: " + status.message());
      }
    }
    finished_(std::move(batch), std::move(status));
  }
}

}  // namespace allring
