#include "collectives/schedule/topology.h"

#include <map>

#include "collectives/base/check.h"

namespace allring {

Topology::Topology(const std::vector<std::string>& host_of) {
  std::map<std::string, int> numbers;
  host_.reserve(host_of.size());
  local_rank_.reserve(host_of.size());
  for (const std::string& name : host_of) {
    const auto [entry, is_new] = numbers.try_emplace(name, hosts());
    if (is_new) ranks_.emplace_back();
    const int host = entry->second;
    local_rank_.push_back(static_cast<int>(ranks_[host].size()));
    ranks_[host].push_back(size());
    host_.push_back(host);
  }
}

Topology Topology::single_host(int size) {
  ALLRING_CHECK(size >= 0, "a group has no negative size");
  return Topology(std::vector<std::string>(static_cast<std::size_t>(size)));
}

std::vector<Rank> Topology::cross_ranks(Rank rank) const {
  const auto local = static_cast<std::size_t>(local_rank(rank));
  std::vector<Rank> result;
  for (const std::vector<Rank>& ranks : ranks_) {
    if (local < ranks.size()) result.push_back(ranks[local]);
  }
  return result;
}

bool Topology::homogeneous() const {
  for (const std::vector<Rank>& ranks : ranks_) {
    if (ranks.size() != ranks_.front().size()) return false;
  }
  return true;
}

}  // namespace allring
