#include "benchmarks/bench/timing.h"

#include <catch2/catch.hpp>

namespace allring::bench {

TEST_CASE("a summary is the least, the middle and the greatest, in whatever order they came") {
  std::vector<double> odd = {5, 1, 9};
  CHECK(summarise(odd).min_us == 1);
  odd = {5, 1, 9};
  CHECK(summarise(odd).median_us == 5);
  CHECK(summarise(odd).max_us == 9);
  std::vector<double> even = {4, 1, 2, 100};
  CHECK(summarise(even).median_us == 3);
  std::vector<double> one = {7};
  CHECK(summarise(one).median_us == 7);
}

TEST_CASE("a ratio above one means that ours is faster") {
  CHECK(ratio_of_medians({1, 30, 40}, {1, 10, 99}) == 3);
  CHECK(ratio_of_medians({1, 10, 40}, {1, 20, 99}) == 0.5);
  CHECK(ratio_of_medians({0, 1, 1}, {0, 0, 0}) == 0);
}

TEST_CASE("blocks share all samples evenly") {
  for (const int total : {1, 7, 10, 20, 23}) {
    for (const int blocks : {1, 2, 7, 10}) {
      CAPTURE(total, blocks);
      int sum = 0;
      for (int block = 0; block < blocks; ++block) {
        const int samples = samples_in_block(total, blocks, block);
        CHECK(samples >= total / blocks);
        CHECK(samples <= total / blocks + 1);
        sum += samples;
      }
      CHECK(sum == total);
    }
  }
}

TEST_CASE("everybody has one turn in a round, and the order turns round") {
  CHECK(whose_turn(3, 0, 0) == 0);
  CHECK(whose_turn(3, 0, 2) == 2);
  CHECK(whose_turn(3, 1, 0) == 2);
  CHECK(whose_turn(3, 1, 1) == 1);
  CHECK(whose_turn(3, 1, 2) == 0);
}

}  // namespace allring::bench
