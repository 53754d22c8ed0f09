#include "collectives/schedule/tree.h"

#include <bit>

#include "collectives/base/check.h"

namespace allring {

TreePlace binomial_tree(Rank rank, int size, Rank root) {
  ALLRING_CHECK(rank >= 0 && rank < size && root >= 0 && root < size, "rank out of range");
  const auto n = static_cast<unsigned>(size);
  const auto number = static_cast<unsigned>((rank - root + size) % size);
  const auto rank_of = [&](unsigned number_of) {
    return static_cast<Rank>((number_of + static_cast<unsigned>(root)) % n);
  };
  TreePlace place;
  // Children are number + 2^k for every 2^k below the lowest set bit.
  const unsigned lowest = number == 0 ? std::bit_ceil(n) : number & -number;
  if (number != 0) place.parent = rank_of(number - lowest);
  for (unsigned bit = lowest / 2; bit != 0; bit /= 2) {
    if (number + bit < n) place.children.push_back(rank_of(number + bit));
  }
  return place;
}

int dissemination_steps(int size) {
  ALLRING_CHECK(size >= 1, "a group has one rank at least");
  return std::bit_width(static_cast<unsigned>(size) - 1);
}

DisseminationStep dissemination_step(Rank rank, int size, int step) {
  ALLRING_CHECK(rank >= 0 && rank < size, "rank out of range");
  ALLRING_CHECK(step >= 0 && step < dissemination_steps(size), "step out of range");
  const int distance = 1 << step;
  return {(rank + distance) % size, (rank - distance + size) % size};
}

}  // namespace allring
