#include "collectives/schedule/halving_doubling.h"

#include <bit>
#include <catch2/catch.hpp>
#include <set>

namespace allring {
namespace {

using Fold = HalvingDoubling::Fold;
using Contributors = std::multiset<int>;

struct Plans {
  explicit Plans(int n) {
    for (int r = 0; r < n; ++r) of.push_back(halving_doubling(r, n));
  }
  std::vector<HalvingDoubling> of;
};

// Runs the plans on sets of contributors instead of numbers.
void simulate(int n) {
  CAPTURE(n);
  const Plans plans(n);
  const int p = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  const int levels = std::bit_width(static_cast<unsigned>(p)) - 1;
  std::vector<std::vector<Contributors>> data(n);
  for (int r = 0; r < n; ++r) data[r].assign(p, Contributors{r});
  const auto add = [](Contributors& sum, const Contributors& x) { sum.insert(x.begin(), x.end()); };

  bool consistent = true;
  for (int r = 0; r < n; ++r) {
    const HalvingDoubling& plan = plans.of[r];
    consistent &= plan.chunks == p;
    if (plan.fold == Fold::kNone) continue;
    consistent &= plans.of[plan.fold_peer].fold_peer == r;
    if (plan.fold != Fold::kTakesIn) continue;
    consistent &= plans.of[plan.fold_peer].fold == Fold::kGivesAway;
    for (int c = 0; c < p; ++c) add(data[r][c], data[plan.fold_peer][c]);
  }
  REQUIRE(consistent);

  for (int k = 0; k < levels; ++k) {
    const auto before = data;
    for (int r = 0; r < n; ++r) {
      if (plans.of[r].fold == Fold::kGivesAway) continue;
      const HalvingStep& step = plans.of[r].halving.at(k);
      const HalvingStep& theirs = plans.of[step.peer].halving.at(k);
      consistent &= theirs.peer == r && theirs.send == step.recv && theirs.recv == step.send;
      consistent &=
          step.distance == p >> (k + 1) && step.recv.end - step.recv.begin == step.distance;
      for (int c = step.recv.begin; c < step.recv.end; ++c) add(data[r][c], before[step.peer][c]);
    }
    REQUIRE(consistent);
  }
  Contributors all;
  for (int r = 0; r < n; ++r) all.insert(r);
  std::set<int> owned;
  for (int r = 0; r < n; ++r) {
    const HalvingDoubling& plan = plans.of[r];
    if (plan.fold == Fold::kGivesAway) {
      REQUIRE((plan.halving.empty() && plan.doubling.empty() && plan.own_chunk == -1));
      continue;
    }
    REQUIRE(data[r][plan.own_chunk] == all);
    owned.insert(plan.own_chunk);
  }
  REQUIRE(owned.size() == static_cast<std::size_t>(p));

  for (int k = 0; k < levels; ++k) {
    const auto before = data;
    for (int r = 0; r < n; ++r) {
      if (plans.of[r].fold == Fold::kGivesAway) continue;
      const HalvingStep& step = plans.of[r].doubling.at(k);
      const HalvingStep& theirs = plans.of[step.peer].doubling.at(k);
      consistent &= theirs.peer == r && theirs.send == step.recv && theirs.recv == step.send;
      for (int c = step.send.begin; c < step.send.end; ++c) consistent &= before[r][c] == all;
      for (int c = step.recv.begin; c < step.recv.end; ++c) data[r][c] = before[step.peer][c];
    }
    REQUIRE(consistent);
  }
  for (int r = 0; r < n; ++r) {
    const bool folded = plans.of[r].fold == Fold::kGivesAway;
    const int source = folded ? plans.of[r].fold_peer : r;
    for (int c = 0; c < p; ++c) consistent &= data[source][c] == all;
  }
  REQUIRE(consistent);
}

TEST_CASE("halving and doubling gives every rank the whole sum, for every size") {
  for (int n = 1; n <= 64; ++n) simulate(n);
}

}  // namespace
}  // namespace allring
