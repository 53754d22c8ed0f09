#include "test/harness/run_ranks.h"

#include <pthread.h>

#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "test/harness/network.h"

namespace allring::test {

namespace {

/// Everything the ranks of one cluster use, made and destroyed by the calling thread.
class RunningCluster {
 public:
  explicit RunningCluster(const Cluster& cluster)
      : topology_(cluster.host_of), network_(make_network(cluster, topology_)) {
    if (cluster.host_memory) {
      memories_ = network_->share_host_memory(cluster.shape,
                                              WaitPolicy::choose(topology_.size(), cluster.wait));
    }
    const bool one_host = topology_.hosts() == 1;
    const Arena::Shape arena = Arena::Shape::of(topology_.size(), cluster.arena_bytes);
    std::shared_ptr<Segment> arena_memory;
    if (cluster.host_memory && cluster.arena && one_host)
      arena_memory = Segment::create_sparse(arena.bytes()).value();
    for (Rank rank = 0; rank < topology_.size(); ++rank) {
      HostMemory* memory = cluster.host_memory
                               ? memories_[topology_.host(rank)][topology_.local_rank(rank)].get()
                               : nullptr;
      transports_.push_back(
          std::make_unique<FaultyTransport>(network_->transport(rank), cluster.fault));
      groups_.push_back(
          std::make_unique<Group>(topology_, *transports_.back(), one_host ? memory : nullptr));
      if (arena_memory)
        groups_.back()->set_arena(
            {std::make_shared<Arena>(arena_memory, arena, rank), topology_.ranks_on(0)});
      build_hierarchy(*groups_.back(), memory);
    }
  }

  int size() const { return topology_.size(); }
  Group& group(Rank rank) { return *groups_[rank]; }
  void abort_all(const Status& reason) {
    for (auto& group : groups_) group->abort(reason);
  }

 private:
  const Topology topology_;
  std::unique_ptr<Network> network_;
  std::vector<std::vector<std::unique_ptr<HostMemory>>> memories_;  // by host, local rank
  std::vector<std::unique_ptr<FaultyTransport>> transports_;
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace

std::string medium_name(Medium medium) {
  switch (medium) {
    case Medium::kInproc:
      return "inproc";
    case Medium::kInprocRendezvous:
      return "inproc-rendezvous";
    case Medium::kShm:
      return "shm";
    case Medium::kUnixSockets:
      return "unix-sockets";
    case Medium::kTcp:
      return "tcp";
  }
  return "?";
}

Cluster Cluster::one_host(int size, Medium medium, bool host_memory) {
  return hosts({size}, medium, host_memory);
}

Cluster Cluster::hosts(const std::vector<int>& ranks_per_host, Medium medium, bool host_memory) {
  Cluster cluster;
  for (std::size_t host = 0; host < ranks_per_host.size(); ++host) {
    cluster.host_of.insert(cluster.host_of.end(), ranks_per_host[host],
                           "host" + std::to_string(host));
  }
  cluster.medium = medium;
  cluster.host_memory = host_memory;
  return cluster;
}

std::vector<Status> run_ranks(const Cluster& cluster, const std::function<Status(Group&)>& body) {
  RunningCluster running(cluster);
  std::mutex mutex;
  std::condition_variable finished;
  std::vector<Status> statuses(running.size());
  std::vector<bool> back(running.size(), false);
  int missing = running.size();

  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < running.size(); ++rank) {
    threads.emplace_back([&, rank] {
      pthread_setname_np(pthread_self(), ("rank " + std::to_string(rank)).c_str());
      Status status = body(running.group(rank));
      if (!status.ok() && cluster.abort_others) {
        running.abort_all(
            Status::aborted("rank " + std::to_string(rank) + " failed: " + status.to_string()));
      }
      std::lock_guard lock(mutex);
      statuses[rank] = std::move(status);
      back[rank] = true;
      --missing;
      finished.notify_all();
    });
  }
  {
    std::unique_lock lock(mutex);
    if (!finished.wait_for(lock, cluster.timeout, [&] { return missing == 0; })) {
      std::string hanging;
      for (Rank rank = 0; rank < running.size(); ++rank) {
        if (!back[rank]) hanging += " " + std::to_string(rank);
      }
      std::fprintf(
          stderr, "run_ranks: after %lld s these ranks have not come back:%s\n",
          static_cast<long long>(std::chrono::duration_cast<seconds>(cluster.timeout).count()),
          hanging.c_str());
      lock.unlock();
      running.abort_all(Status::timed_out("the test's time is over; hanging ranks:" + hanging));
    }
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

std::string failures(const std::vector<Status>& statuses) {
  std::string causes, consequences;
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    if (statuses[rank].ok()) continue;
    std::string& list = statuses[rank].code() == StatusCode::kAborted ? consequences : causes;
    list += "rank " + std::to_string(rank) + ": " + statuses[rank].to_string() + "\n";
  }
  return causes + consequences;
}

}  // namespace allring::test
