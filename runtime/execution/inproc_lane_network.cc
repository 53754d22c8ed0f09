#include "runtime/execution/inproc_lane_network.h"

#include <utility>

#include "collectives/transport/heap_host_memory.h"
#include "collectives/transport/inproc.h"

namespace allring {

namespace {

class InprocLaneNetwork final : public LaneNetwork {
 public:
  InprocLaneNetwork(std::shared_ptr<InprocNetwork> network, const Topology& topology, Rank rank,
                    std::unique_ptr<HostMemory> host_memory)
      : network_(std::move(network)),
        host_memory_(std::move(host_memory)),
        group_(topology, network_->transport(rank),
               topology.hosts() == 1 ? host_memory_.get() : nullptr) {
    build_hierarchy(group_, host_memory_.get());
  }
  ~InprocLaneNetwork() override { abort(Status::aborted("this rank closed its network")); }

  Group& group() override { return group_; }
  void abort(Status reason) noexcept override { group_.abort(std::move(reason)); }

 private:
  std::shared_ptr<InprocNetwork> network_;
  std::unique_ptr<HostMemory> host_memory_;
  Group group_;
};

}  // namespace

std::vector<std::unique_ptr<LaneNetwork>> make_inproc_lane_networks(const Topology& topology,
                                                                    bool shared_memory) {
  std::vector<std::unique_ptr<HostMemory>> memory(topology.size());
  for (int host = 0; shared_memory && host < topology.hosts(); ++host) {
    const std::vector<Rank>& ranks = topology.ranks_on(host);
    HostMemory::Shape shape;
    shape.ranks = static_cast<int>(ranks.size());
    shape.slot_bytes = 64 << 10;
    auto views = make_heap_host_memory(shape, WaitPolicy::choose(topology.size()));
    for (std::size_t i = 0; i < ranks.size(); ++i) memory[ranks[i]] = std::move(views[i]);
  }
  auto network = std::make_shared<InprocNetwork>(topology.size());
  std::vector<std::unique_ptr<LaneNetwork>> lanes;
  for (Rank rank = 0; rank < topology.size(); ++rank)
    lanes.push_back(
        std::make_unique<InprocLaneNetwork>(network, topology, rank, std::move(memory[rank])));
  return lanes;
}

}  // namespace allring
