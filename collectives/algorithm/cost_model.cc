#include "collectives/algorithm/cost_model.h"

#include <algorithm>

namespace allring {

MessageCost message_cost(const Group& group) {
  const Topology& topology = group.topology();
  if (topology.hosts() == 1) return {group.costs().within_host, 1};
  MessageCost cost{group.costs().between_hosts, 1};
  for (int host = 0; host < topology.hosts(); ++host) {
    cost.ranks_per_host =
        std::max(cost.ranks_per_host, static_cast<int>(topology.ranks_on(host).size()));
  }
  return cost;
}

}  // namespace allring
