#include "runtime/rendezvous/mesh_lane_network.h"

#include <algorithm>
#include <utility>

#include "collectives/base/check.h"
#include "collectives/transport/share_host_memory.h"

namespace allring {

namespace {

Result<std::unique_ptr<HostMemory>> share(Endpoint& endpoint,
                                          const MeshLaneNetwork::Settings& settings,
                                          Rank group_rank, Deadline deadline) {
  // Otherwise there is no group for it: see build_hierarchy().
  const bool useful = settings.topology.hosts() == 1 || settings.topology.homogeneous();
  if (!settings.shared_memory || !useful) return std::unique_ptr<HostMemory>();
  std::vector<Rank> neighbours;
  for (Rank rank : settings.topology.ranks_on(settings.topology.host(group_rank)))
    neighbours.push_back(settings.members[rank]);
  HostMemory::Shape shape;
  shape.ranks = static_cast<int>(neighbours.size());
  shape.slot_bytes = settings.slot_bytes;
  return share_host_memory(endpoint, settings.channel, neighbours, shape, settings.wait, deadline);
}

}  // namespace

Result<std::unique_ptr<LaneNetwork>> MeshLaneNetwork::create(Endpoint& endpoint, Settings settings,
                                                             Deadline deadline) {
  const auto self = std::find(settings.members.begin(), settings.members.end(), endpoint.rank());
  ALLRING_CHECK(self != settings.members.end(), "this rank is a member of its process set");
  const Rank group_rank = static_cast<Rank>(self - settings.members.begin());
  std::unique_ptr<MeshLaneNetwork> network(new MeshLaneNetwork());
  ALLRING_ASSIGN_OR_RETURN(network->memory_, share(endpoint, settings, group_rank, deadline));
  MeshTransport::Settings mesh;
  mesh.channel = settings.channel;
  mesh.members = settings.members;
  mesh.wait = settings.wait;
  mesh.shared_memory = settings.shared_memory;
  mesh.connect_timeout = settings.connect_timeout;
  ALLRING_ASSIGN_OR_RETURN(network->transport_, MeshTransport::create(endpoint, std::move(mesh)));
  const bool one_host = settings.topology.hosts() == 1;
  network->group_ = std::make_unique<Group>(settings.topology, *network->transport_,
                                            one_host ? network->memory_.get() : nullptr);
  network->group_->set_arena(std::move(settings.arena));
  network->group_->set_costs(settings.costs);
  if (!one_host) build_hierarchy(*network->group_, network->memory_.get());
  return std::unique_ptr<LaneNetwork>(std::move(network));
}

}  // namespace allring
