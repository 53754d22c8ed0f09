#pragma once

#include <memory>
#include <vector>

#include "collectives/schedule/topology.h"
#include "runtime/rendezvous/lane_network.h"

namespace allring {

/// The networks of one lane for ranks that are threads of this process, indexed by rank: for tests
/// and simulations. Ranks that the topology puts on one host share memory if `shared_memory` says
/// so. Destroying or aborting one looks to the others like the death of its rank.
std::vector<std::unique_ptr<LaneNetwork>> make_inproc_lane_networks(const Topology& topology,
                                                                    bool shared_memory);

}  // namespace allring
