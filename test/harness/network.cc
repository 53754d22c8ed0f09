#include "test/harness/network.h"

#include <future>
#include <string>

#include "collectives/base/check.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/heap_host_memory.h"
#include "collectives/transport/inproc.h"
#include "collectives/transport/mesh.h"
#include "collectives/transport/share_host_memory.h"

namespace allring::test {

namespace {

using HostMemories = std::vector<std::vector<std::unique_ptr<HostMemory>>>;

/// Threads that hand messages to each other.
class InprocRanks final : public Network {
 public:
  InprocRanks(InprocNetwork::Mode mode, const Topology& topology)
      : topology_(topology), network_(topology.size(), mode) {}

  Transport& transport(Rank rank) override { return network_.transport(rank); }

  HostMemories share_host_memory(HostMemory::Shape shape, WaitPolicy policy) override {
    HostMemories memories;
    for (int host = 0; host < topology_.hosts(); ++host) {
      shape.ranks = static_cast<int>(topology_.ranks_on(host).size());
      memories.push_back(make_heap_host_memory(shape, policy));
    }
    return memories;
  }

 private:
  const Topology& topology_;
  InprocNetwork network_;
};

/// What processes use: sockets, rings and segments of the system, between endpoints that pretend
/// to be on different hosts.
class MeshRanks final : public Network {
 public:
  MeshRanks(const Cluster& cluster, const Topology& topology) : topology_(topology) {
    std::vector<PeerInfo> infos;
    for (Rank rank = 0; rank < topology.size(); ++rank) {
      Endpoint::Settings settings;
      settings.rank = rank;
      settings.size = topology.size();
      settings.hostname = cluster.host_of[rank];
      settings.host_key = cluster.host_of[rank];
      // The topology says that these share a host, but the network does not know.
      if (cluster.medium == Medium::kTcp) settings.host_key += "/" + std::to_string(rank);
      settings.secret = "a secret of the test's own";
      settings.reach = Endpoint::Reach::kLoopback;
      endpoints_.push_back(Endpoint::start(settings).value());
      infos.push_back(endpoints_.back()->info());
    }
    for (Rank rank = 0; rank < topology.size(); ++rank) {
      endpoints_[rank]->set_peers(infos);
      MeshTransport::Settings settings;
      settings.wait = WaitPolicy::choose(topology.size(), cluster.wait);
      settings.shared_memory = cluster.medium != Medium::kUnixSockets;
      transports_.push_back(MeshTransport::create(*endpoints_[rank], settings).value());
    }
  }

  Transport& transport(Rank rank) override { return *transports_[rank]; }

  HostMemories share_host_memory(HostMemory::Shape shape, WaitPolicy policy) override {
    HostMemories memories;
    for (int host = 0; host < topology_.hosts(); ++host) {
      const std::vector<Rank>& members = topology_.ranks_on(host);
      std::vector<std::future<std::unique_ptr<HostMemory>>> shared;
      for (const Rank rank : members) {
        shared.push_back(std::async(std::launch::async, [&, rank] {
          return allring::share_host_memory(*endpoints_[rank], 1, members, shape, policy,
                                            deadline_after(seconds(30)))
              .value();
        }));
      }
      memories.emplace_back();
      for (auto& memory : shared) {
        memories.back().push_back(memory.get());
        // A single rank has nobody to share with.
        if (memories.back().back() || members.size() > 1) continue;
        HostMemory::Shape alone = shape;
        alone.ranks = 1;
        memories.back() = make_heap_host_memory(alone, policy);
      }
    }
    return memories;
  }

 private:
  const Topology& topology_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::unique_ptr<MeshTransport>> transports_;
};

}  // namespace

std::unique_ptr<Network> make_network(const Cluster& cluster, const Topology& topology) {
  switch (cluster.medium) {
    case Medium::kInproc:
      return std::make_unique<InprocRanks>(InprocNetwork::Mode::kBuffered, topology);
    case Medium::kInprocRendezvous:
      return std::make_unique<InprocRanks>(InprocNetwork::Mode::kRendezvous, topology);
    case Medium::kShm:
    case Medium::kUnixSockets:
    case Medium::kTcp:
      return std::make_unique<MeshRanks>(cluster, topology);
  }
  ALLRING_CHECK(false, "no such medium");
}

}  // namespace allring::test
