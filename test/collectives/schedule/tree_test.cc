#include "collectives/schedule/tree.h"

#include <bit>
#include <catch2/catch.hpp>
#include <set>

namespace allring {
namespace {

int ceil_log2(int n) { return std::bit_width(static_cast<unsigned>(n) - 1); }

TEST_CASE("a binomial tree reaches every rank once, within ceil(log2 n) rounds") {
  for (int n = 1; n <= 64; ++n) {
    for (int root = 0; root < n; ++root) {
      CAPTURE(n, root);
      // round[r]: when r has the data, if every rank serves one child per round.
      std::vector<int> round(n, -1);
      std::vector<Rank> reached{root};
      round[root] = 0;
      bool right = !binomial_tree(root, n, root).parent;
      for (std::size_t i = 0; i < reached.size() && right; ++i) {
        const Rank rank = reached[i];
        int at = round[rank];
        for (const Rank child : binomial_tree(rank, n, root).children) {
          right &= round[child] == -1 && binomial_tree(child, n, root).parent == rank;
          round[child] = ++at;
          right &= at <= ceil_log2(n);
          reached.push_back(child);
        }
      }
      REQUIRE(right);
      REQUIRE(reached.size() == static_cast<std::size_t>(n));
    }
  }
}

TEST_CASE("after dissemination every rank has heard from every other") {
  for (int n = 1; n <= 64; ++n) {
    CAPTURE(n);
    REQUIRE(dissemination_steps(n) == ceil_log2(n));
    std::vector<std::set<int>> heard(n);
    for (int r = 0; r < n; ++r) heard[r] = {r};
    for (int k = 0; k < dissemination_steps(n); ++k) {
      const auto before = heard;
      bool matched = true;
      for (int r = 0; r < n; ++r) {
        const DisseminationStep step = dissemination_step(r, n, k);
        matched &= step.recv_from != r && dissemination_step(step.recv_from, n, k).send_to == r;
        const auto& news = before[step.recv_from];
        heard[r].insert(news.begin(), news.end());
      }
      REQUIRE(matched);
    }
    for (int r = 0; r < n; ++r) REQUIRE(heard[r].size() == static_cast<std::size_t>(n));
  }
}

}  // namespace
}  // namespace allring
