#include "launcher/placement.h"

#include <algorithm>
#include <numeric>

#include "collectives/schedule/topology.h"

namespace allring {

namespace {

/// How many ranks each host gets.
Result<std::vector<int>> deal(const std::vector<Host>& hosts, int size, bool oversubscribe) {
  std::vector<int> counts;
  int left = size;
  for (const Host& host : hosts) {
    counts.push_back(std::min(host.slots, left));
    left -= counts.back();
  }
  if (left == 0) return counts;
  const int slots = size - left;
  if (!oversubscribe)
    return Status::invalid_argument(
        "-np " + std::to_string(size) + " is more than the " + std::to_string(slots) +
        " slots of the hosts; lower it, give the hosts more slots, or pass --oversubscribe");
  while (left > 0) {
    const int before = left;
    for (std::size_t i = 0; i < hosts.size() && left > 0; ++i) {
      if (hosts[i].max_slots != 0 && counts[i] >= hosts[i].max_slots) continue;
      ++counts[i];
      --left;
    }
    if (left == before)
      return Status::invalid_argument("-np " + std::to_string(size) + " is more than the " +
                                      std::to_string(size - left) +
                                      " ranks that max_slots allows; lower it or raise max_slots");
  }
  return counts;
}

}  // namespace

std::string Placement::to_string() const {
  std::string text;
  for (const PlacedHost& placed : hosts) {
    for (const PlacedRank& rank : placed.ranks) {
      text += "rank " + std::to_string(rank.rank) + ": " + placed.host.name + ", local " +
              std::to_string(rank.local_rank) + " of " + std::to_string(rank.local_size) +
              ", cross " + std::to_string(rank.cross_rank) + " of " +
              std::to_string(rank.cross_size) + "\n";
    }
  }
  return text;
}

Result<Placement> place(const std::vector<Host>& hosts, std::optional<int> size,
                        bool oversubscribe) {
  const int slots = std::accumulate(hosts.begin(), hosts.end(), 0,
                                    [](int sum, const Host& host) { return sum + host.slots; });
  Placement placement;
  placement.size = size.value_or(slots);
  ALLRING_ASSIGN_OR_RETURN(const std::vector<int> counts,
                           deal(hosts, placement.size, oversubscribe));

  std::vector<std::string> host_of;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    host_of.insert(host_of.end(), static_cast<std::size_t>(counts[i]), std::to_string(i));
  const Topology topology(host_of);

  Rank rank = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (counts[i] == 0) continue;
    PlacedHost placed{hosts[i], {}};
    for (int k = 0; k < counts[i]; ++k, ++rank) {
      const std::vector<Rank> cross = topology.cross_ranks(rank);
      const auto own = std::find(cross.begin(), cross.end(), rank);
      placed.ranks.push_back({rank, topology.local_rank(rank), topology.local_size(rank),
                              static_cast<int>(own - cross.begin()),
                              static_cast<int>(cross.size())});
    }
    placement.hosts.push_back(std::move(placed));
  }
  return placement;
}

}  // namespace allring
