#include "collectives/algorithm/cost_model.h"

#include <algorithm>

namespace allring {

namespace {

// Ratios matter, not values. Within a host: unix sockets and rings in shared memory, between
// threads that wait by yielding. Between hosts: 10 Gbit/s Ethernet.
constexpr MessageCost kWithinHost{
    .alpha_us = 6, .overhead_us = 1.5, .us_per_byte = 1 / 4e3, .ranks_per_host = 1};
constexpr MessageCost kBetweenHosts{
    .alpha_us = 30, .overhead_us = 4, .us_per_byte = 1 / 1.2e3, .ranks_per_host = 1};

// A line travels between cores in 150 ns, with whatever core writes it next waiting for it.
constexpr MemoryCost kHostMemory{.line_us = 0.15, .flag_us = 0.3, .us_per_byte = 1 / 20e3};

}  // namespace

MessageCost message_cost(const Group& group) {
  const Topology& topology = group.topology();
  if (topology.hosts() == 1) return kWithinHost;
  MessageCost cost = kBetweenHosts;
  for (int host = 0; host < topology.hosts(); ++host) {
    cost.ranks_per_host =
        std::max(cost.ranks_per_host, static_cast<int>(topology.ranks_on(host).size()));
  }
  return cost;
}

MemoryCost memory_cost(const Group&) { return kHostMemory; }

}  // namespace allring
