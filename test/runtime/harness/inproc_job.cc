#include "test/runtime/harness/inproc_job.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "runtime/execution/inproc_lane_network.h"

namespace allring::test {

InprocJob::InprocJob(int size, const Options& options)
    : InprocJob(Topology::single_host(size), options) {}

InprocJob::InprocJob(const Topology& topology, const Options& options)
    : topology_(topology), hub_(topology.size()), networks_(topology.size()) {
  std::vector<ProcessSet::Links> links(topology.size());
  for (int lane = 0; lane < static_cast<int>(options.lanes); ++lane) {
    auto networks = make_inproc_lane_networks(topology, options.shared_memory);
    for (Rank rank = 0; rank < size(); ++rank) {
      networks_[rank].push_back(networks[rank].get());
      links[rank].lanes.push_back(std::move(networks[rank]));
    }
  }
  for (Rank rank = 0; rank < size(); ++rank) {
    links[rank].control = hub_.channel(rank);
    ProcessSet::Settings settings;
    settings.single_host = topology.hosts() == 1;
    settings.members.resize(size());
    std::iota(settings.members.begin(), settings.members.end(), 0);
    for (Rank other = 0; other < size(); ++other)
      settings.descriptions.push_back("rank " + std::to_string(other) + " (host h" +
                                      std::to_string(topology.host(other)) + ")");
    Runtime::Place place;
    place.rank = rank;
    place.size = size();
    runtimes_.push_back(
        Runtime::start(options, place, std::move(settings), std::move(links[rank])).value());
  }
}

InprocJob::~InprocJob() { shutdown(); }

void InprocJob::kill(Rank rank) {
  hub_.kill(rank);
  for (LaneNetwork* network : networks_[rank]) network->abort(Status::aborted("killed"));
}

void InprocJob::on_each(const std::function<void(Rank)>& body, std::vector<Rank> ranks) {
  if (ranks.empty()) {
    ranks.resize(size());
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Rank> running = ranks;
  std::vector<std::thread> threads;
  for (Rank rank : ranks) {
    threads.emplace_back([&, rank] {
      body(rank);
      std::lock_guard lock(mutex);
      std::erase(running, rank);
      changed.notify_one();
    });
  }
  {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, std::chrono::minutes(1), [&] { return running.empty(); })) {
      for (Rank rank : running) std::fprintf(stderr, "rank %d hangs\n", rank);
      std::abort();
    }
  }
  for (std::thread& thread : threads) thread.join();
}

void InprocJob::shutdown() {
  on_each([this](Rank rank) { runtimes_[rank]->shutdown(); });
}

std::future<Completion> submit(ProcessSet& set, Request request, const void* input, void* output) {
  std::vector<std::future<Completion>> futures =
      submit_group(set, {std::move(request)}, {{input, output}});
  return std::move(futures.front());
}

std::vector<std::future<Completion>> submit_group(ProcessSet& set, std::vector<Request> requests,
                                                  const std::vector<TensorView>& views) {
  std::vector<std::future<Completion>> futures;
  std::vector<std::shared_ptr<std::promise<Completion>>> promises;
  std::vector<Submission> submissions;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto promise = std::make_shared<std::promise<Completion>>();
    futures.push_back(promise->get_future());
    submissions.push_back({std::move(requests[i]), views[i], [promise](Completion completion) {
                             promise->set_value(std::move(completion));
                           }});
    promises.push_back(std::move(promise));
  }
  if (const Status status = set.submit(std::move(submissions)); !status.ok())
    for (auto& promise : promises) promise->set_value({status, {}, {}, {}});
  return futures;
}

Completion await(std::future<Completion>& future) {
  if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready)
    return {Status::timed_out("the test waited for 30 s"), {}, {}, {}};
  return future.get();
}

Completion await(std::future<Completion>&& future) { return await(future); }

Request float_request(CollectiveKind kind, const std::string& name, std::int64_t count) {
  Request request;
  request.kind = kind;
  request.name = name;
  request.shape = {count};
  return request;
}

}  // namespace allring::test
