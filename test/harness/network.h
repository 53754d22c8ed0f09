#pragma once

#include <memory>
#include <vector>

#include "collectives/schedule/topology.h"
#include "collectives/transport/host_memory.h"
#include "collectives/transport/transport.h"
#include "test/harness/run_ranks.h"

namespace allring::test {

/// What joins the ranks of a made-up cluster: a transport for each, and memory for those of a host.
class Network {
 public:
  virtual ~Network() = default;

  virtual Transport& transport(Rank rank) = 0;

  /// By host and local rank.
  virtual std::vector<std::vector<std::unique_ptr<HostMemory>>> share_host_memory(
      HostMemory::Shape shape, WaitPolicy policy) = 0;
};

/// The network of `cluster`, whose hosts are those of `topology`.
std::unique_ptr<Network> make_network(const Cluster& cluster, const Topology& topology);

}  // namespace allring::test
