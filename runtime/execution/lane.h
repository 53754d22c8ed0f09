#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "collectives/communicator/communicator.h"
#include "runtime/execution/batch.h"
#include "runtime/execution/scratch.h"
#include "runtime/rendezvous/lane_network.h"
#include "runtime/strategy/strategy.h"

namespace allring {

/// A thread ("allring-lane0") that runs batches one after another over a network of its own. Lanes
/// of one number run the same batches in the same order on all ranks. Thread-safe.
class Lane {
 public:
  /// Called on the lane's thread for each batch, in order: with its status and completions filled
  /// in. After the first failure no batch runs any more; the rest come back with kAborted.
  using Finished = std::function<void(Batch, Status)>;

  static std::unique_ptr<Lane> start(int index, std::unique_ptr<LaneNetwork> network,
                                     const ForcedAlgorithms& forced,
                                     std::shared_ptr<Strategy> strategy, Finished finished);
  /// Finishes what was queued, then joins the thread: abort() first where peers may not come.
  ~Lane();

  /// Does not block.
  void run(Batch batch);

  /// Ends the running batch and what is queued.
  void abort(const Status& reason) noexcept;

 private:
  Lane(std::unique_ptr<LaneNetwork> network, const ForcedAlgorithms& forced,
       std::shared_ptr<Strategy> strategy, Finished finished);
  void loop();

  std::unique_ptr<LaneNetwork> network_;
  Communicator communicator_;           // loop() only
  std::shared_ptr<Strategy> strategy_;  // loop() only
  Scratch scratch_;                     // loop() only
  Finished finished_;                   // loop() only

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> queue_;
  Status ended_;  // why no batch runs any more
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace allring
