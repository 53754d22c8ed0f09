#include "collectives/schedule/ring.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace allring {
namespace {

TEST_CASE("the ring's reduce-scatter adds every rank's data exactly once to each chunk") {
  for (int n = 1; n <= 64; ++n) {
    CAPTURE(n);
    // sums[r][c]: whose data rank r's partial sum of chunk c contains.
    std::vector<std::vector<std::multiset<int>>> sums(n, std::vector<std::multiset<int>>(n));
    for (int r = 0; r < n; ++r) {
      for (int c = 0; c < n; ++c) sums[r][c] = {r};
    }
    for (int k = 0; k < ring_steps(n); ++k) {
      std::vector<std::multiset<int>> sent(n);
      for (int r = 0; r < n; ++r) sent[r] = sums[r][ring_reduce_scatter_step(r, n, k).send_chunk];
      bool matched = true;
      for (int r = 0; r < n; ++r) {
        const RingStep step = ring_reduce_scatter_step(r, n, k);
        const RingStep theirs = ring_reduce_scatter_step(step.recv_from, n, k);
        matched &= theirs.send_to == r && theirs.send_chunk == step.recv_chunk;
        const auto& incoming = sent[step.recv_from];
        sums[r][step.recv_chunk].insert(incoming.begin(), incoming.end());
      }
      REQUIRE(matched);
    }
    std::multiset<int> all;
    for (int r = 0; r < n; ++r) all.insert(r);
    bool complete = true;
    for (int r = 0; r < n; ++r) complete &= sums[r][r] == all;
    REQUIRE(complete);
  }
}

TEST_CASE("the ring's allgather forwards only what a rank holds, and ends with all holding all") {
  for (int n = 1; n <= 64; ++n) {
    CAPTURE(n);
    std::vector<std::set<int>> held(n);
    for (int r = 0; r < n; ++r) held[r] = {r};
    for (int k = 0; k < ring_steps(n); ++k) {
      bool matched = true;
      const auto before = held;
      for (int r = 0; r < n; ++r) {
        const RingStep step = ring_allgather_step(r, n, k);
        const RingStep theirs = ring_allgather_step(step.recv_from, n, k);
        matched &= theirs.send_to == r && theirs.send_chunk == step.recv_chunk;
        matched &= before[r].count(step.send_chunk) == 1 && before[r].count(step.recv_chunk) == 0;
        held[r].insert(step.recv_chunk);
      }
      REQUIRE(matched);
    }
    for (int r = 0; r < n; ++r) REQUIRE(held[r].size() == static_cast<std::size_t>(n));
  }
}

TEST_CASE("a step on the ring forwards what the step before received") {
  for (int k = 1; k < ring_steps(7); ++k) {
    REQUIRE(ring_reduce_scatter_step(3, 7, k).send_chunk ==
            ring_reduce_scatter_step(3, 7, k - 1).recv_chunk);
    REQUIRE(ring_allgather_step(3, 7, k).send_chunk == ring_allgather_step(3, 7, k - 1).recv_chunk);
  }
}

}  // namespace
}  // namespace allring
