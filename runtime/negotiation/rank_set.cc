#include "runtime/negotiation/rank_set.h"

namespace allring {

std::vector<Rank> RankSet::ranks() const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size_; ++rank)
    if (contains(rank)) ranks.push_back(rank);
  return ranks;
}

std::vector<Rank> RankSet::missing() const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < size_; ++rank)
    if (!contains(rank)) ranks.push_back(rank);
  return ranks;
}

std::string rank_list_text(std::span<const Rank> ranks, std::span<const Rank> members) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && members[ranks[last + 1]] == members[ranks[last]] + 1) ++last;
    // Two in a row are shorter with a comma.
    if (last - first < 3) last = first;
    if (first > 0) text += ',';
    text += std::to_string(members[ranks[first]]);
    if (last > first) text += "-" + std::to_string(members[ranks[last]]);
    first = last + 1;
  }
  return text;
}

}  // namespace allring
