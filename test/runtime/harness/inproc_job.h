#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "collectives/base/options.h"
#include "collectives/schedule/topology.h"
#include "runtime/core/runtime.h"
#include "runtime/negotiation/inproc_control_channel.h"

namespace allring::test {

/// A job whose ranks are Runtimes of this process, over in-process links: what Runtime::join()
/// makes, less the rendezvous.
class InprocJob {
 public:
  explicit InprocJob(int size, const Options& options = {});
  InprocJob(const Topology& topology, const Options& options);
  ~InprocJob();

  int size() const { return topology_.size(); }
  Runtime& runtime(Rank rank) { return *runtimes_[rank]; }
  ProcessSet& set(Rank rank) { return *runtimes_[rank]->process_set(0).value(); }

  /// As if the process of `rank` had been killed: its links go without a word.
  void kill(Rank rank);

  /// Runs body(rank) on a thread for each rank in `ranks` (all, if empty) and joins them. Aborts
  /// the process with a message if they are not done within a minute.
  void on_each(const std::function<void(Rank)>& body, std::vector<Rank> ranks = {});

  /// shutdown() on each rank, all at once.
  void shutdown();

 private:
  Topology topology_;
  InprocControlHub hub_;
  std::vector<std::vector<LaneNetwork*>> networks_;  // by rank
  std::vector<std::unique_ptr<Runtime>> runtimes_;
};

/// Submits one tensor. The future's completion carries the failure of submit() too.
std::future<Completion> submit(ProcessSet& set, Request request, const void* input, void* output);
/// A group, in one call.
std::vector<std::future<Completion>> submit_group(ProcessSet& set, std::vector<Request> requests,
                                                  const std::vector<TensorView>& views);
/// The completion, or kTimedOut after half a minute.
Completion await(std::future<Completion>& future);
Completion await(std::future<Completion>&& future);

/// A request for `count` float32 elements.
Request float_request(CollectiveKind kind, const std::string& name, std::int64_t count);

}  // namespace allring::test
