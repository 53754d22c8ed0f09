#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/base/types.h"

namespace allring {

/// Which ranks of a group, as bits. Thread-compatible.
class RankSet {
 public:
  explicit RankSet(int size) : size_(size), words_((size + 63) / 64) {}

  /// False if it was there.
  bool insert(Rank rank) {
    std::uint64_t& word = words_[rank / 64];
    const std::uint64_t bit = std::uint64_t{1} << (rank % 64);
    if ((word & bit) != 0) return false;
    word |= bit;
    ++count_;
    return true;
  }
  bool erase(Rank rank) {
    if (!contains(rank)) return false;
    words_[rank / 64] &= ~(std::uint64_t{1} << (rank % 64));
    --count_;
    return true;
  }
  bool contains(Rank rank) const {
    return rank >= 0 && rank < size_ && (words_[rank / 64] >> (rank % 64) & 1) != 0;
  }
  int size() const { return size_; }
  int count() const { return count_; }
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == size_; }

  /// Ascending.
  std::vector<Rank> ranks() const;
  std::vector<Rank> missing() const;

 private:
  int size_;
  int count_ = 0;
  std::vector<std::uint64_t> words_;
};

/// "rank 2", "ranks 0,1,3", "ranks 0-62,64": as ranks of the job.
/// @param members members[i] is the rank in the job of the group's rank i.
std::string rank_list_text(std::span<const Rank> ranks, std::span<const Rank> members);

}  // namespace allring
