#pragma once

#include <string>
#include <vector>

#include "collectives/base/types.h"

namespace allring {

/// Which rank of a group sits on which host. Pure data, the same on every rank.
class Topology {
 public:
  Topology() = default;
  /// host_of[r] is any value that is equal for ranks that share a host; hosts are numbered in
  /// order of their lowest rank.
  explicit Topology(const std::vector<std::string>& host_of);
  /// All `size` ranks on one host.
  static Topology single_host(int size);

  int size() const { return static_cast<int>(host_.size()); }
  int hosts() const { return static_cast<int>(ranks_.size()); }
  int host(Rank rank) const { return host_[rank]; }
  /// Ranks on a host, ascending.
  const std::vector<Rank>& ranks_on(int host) const { return ranks_[host]; }
  int local_rank(Rank rank) const { return local_rank_[rank]; }
  int local_size(Rank rank) const { return static_cast<int>(ranks_[host_[rank]].size()); }
  /// The ranks with the same local_rank, one per host that has so many, in host order.
  std::vector<Rank> cross_ranks(Rank rank) const;
  /// Every host has the same number of ranks.
  bool homogeneous() const;

 private:
  std::vector<int> host_;
  std::vector<int> local_rank_;
  std::vector<std::vector<Rank>> ranks_;
};

}  // namespace allring
