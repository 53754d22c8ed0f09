#include "collectives/schedule/halving_doubling.h"

#include <bit>

#include "collectives/base/check.h"

namespace allring {

HalvingDoubling halving_doubling(Rank rank, int size) {
  ALLRING_CHECK(rank >= 0 && rank < size, "rank out of range");
  HalvingDoubling plan;
  plan.chunks = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
  const int folded = size - plan.chunks;
  if (rank < 2 * folded) {
    const bool gives = rank % 2 == 0;
    plan.fold = gives ? HalvingDoubling::Fold::kGivesAway : HalvingDoubling::Fold::kTakesIn;
    plan.fold_peer = gives ? rank + 1 : rank - 1;
    if (gives) return plan;
  }
  // Numbers of those that take part, 0 .. chunks-1, and back.
  plan.own_chunk = rank < 2 * folded ? rank / 2 : rank - folded;
  const auto rank_of = [&](int number) {
    return number < folded ? 2 * number + 1 : number + folded;
  };

  ChunkRun mine{0, plan.chunks};
  for (int distance = plan.chunks / 2; distance >= 1; distance /= 2) {
    const int middle = mine.begin + distance;
    const ChunkRun lower{mine.begin, middle};
    const ChunkRun upper{middle, mine.end};
    const bool keep_lower = (plan.own_chunk & distance) == 0;
    mine = keep_lower ? lower : upper;
    plan.halving.push_back(
        {rank_of(plan.own_chunk ^ distance), distance, keep_lower ? upper : lower, mine});
  }
  for (auto step = plan.halving.rbegin(); step != plan.halving.rend(); ++step) {
    plan.doubling.push_back({step->peer, step->distance, step->recv, step->send});
  }
  return plan;
}

}  // namespace allring
