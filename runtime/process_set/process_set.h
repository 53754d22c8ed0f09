#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/options.h"
#include "collectives/base/status.h"
#include "runtime/core/cycle.h"
#include "runtime/execution/executor.h"
#include "runtime/negotiation/controller.h"
#include "runtime/request/tensor_queue.h"

namespace allring {

/// A set of ranks that run collectives among themselves: names, counters, negotiation and lanes are
/// its own, and its coordinator thread ("allring-coord0") serves no other set. Thread-safe.
class ProcessSet {
 public:
  /// What its coordinator and its lanes talk through.
  struct Links {
    std::unique_ptr<ControlChannel> control;
    std::vector<std::unique_ptr<LaneNetwork>> lanes;
  };

  struct Settings {
    std::uint32_t id = 0;
    std::uint32_t epoch = 0;
    std::vector<Rank> members;              ///< ranks of the job, ascending
    std::vector<std::string> descriptions;  ///< of the members: "rank 3 (host b)"
    bool single_host = true;                ///< all members on one
    Clock* clock = &Clock::real();
  };

  /// Starts the threads. All members do it, with the same options where these have to agree.
  /// @return kInvalidArgument for an option that names what does not exist, kOutOfMemory.
  static Result<std::unique_ptr<ProcessSet>> start(const Options& options, Settings settings,
                                                   Links links);
  ~ProcessSet();

  std::uint32_t id() const { return settings_.id; }
  /// This process' place in the set.
  Rank rank() const { return rank_; }
  int size() const { return static_cast<int>(settings_.members.size()); }
  const std::vector<Rank>& members() const { return settings_.members; }
  /// The place of a rank of the job. @return kInvalidArgument if it is no member.
  Result<Rank> place_of(Rank job_rank) const;
  int lanes() const { return lanes_; }
  /// The members share memory, so that no byte of a collective goes over a socket.
  bool shared_memory() const { return shared_memory_; }

  /// A name for a collective that the caller gave none: the next of a counter for its kind, so
  /// members must make unnamed calls of one kind in the same order.
  std::string next_name(CollectiveKind kind);

  /// Hands tensors to the coordinator: all or none. A group comes in one call. Each `done` is
  /// called once, on another thread, unless this fails. Does not block.
  /// @return kInvalidArgument naming the tensor and what is wrong with it; after a failure or a
  /// shutdown
  ///         why the set has ended.
  Status submit(std::vector<Submission> submissions);

  /// Leaves: what all members have submitted is finished, everything else fails here and, soon
  /// after, on all other members. Blocks until that is done and the threads are joined; bounded
  /// even if other members hang. Then the links are closed. Later calls do nothing.
  void shutdown();

 private:
  ProcessSet(Settings settings, Links links);

  const Settings settings_;
  const Rank rank_;
  int lanes_ = 0;
  bool shared_memory_ = false;
  std::atomic<std::uint64_t> counters_[6] = {};
  std::unique_ptr<ControlChannel> channel_;
  TensorQueue queue_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Cycle> cycle_;
  std::thread coordinator_;
  std::mutex shutdown_mutex_;
};

}  // namespace allring
