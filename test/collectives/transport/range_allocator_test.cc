#include "collectives/transport/range_allocator.h"

#include <catch2/catch.hpp>
#include <random>
#include <utility>
#include <vector>

namespace allring {
namespace {

std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs(
    const std::vector<RangeSet::Range>& ranges) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> result;
  for (const RangeSet::Range& range : ranges) result.emplace_back(range.begin, range.end);
  return result;
}

using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST_CASE("a set of ranges does what a set of numbers does") {
  constexpr std::uint64_t kNumbers = 64;
  std::mt19937_64 random(20261130);
  RangeSet set;
  std::vector<bool> model(kNumbers, false);
  for (int turn = 0; turn < 3000; ++turn) {
    const std::uint64_t begin = random() % kNumbers;
    const RangeSet::Range range{begin, begin + random() % (kNumbers - begin + 1)};
    const bool add = random() % 2 == 0;
    add ? set.add(range) : set.remove(range);
    for (std::uint64_t i = range.begin; i < range.end; ++i) model[i] = add;

    Pairs expected;
    for (std::uint64_t i = 0; i < kNumbers; ++i) {
      if (!model[i]) continue;
      if (i > 0 && model[i - 1]) {
        ++expected.back().second;
      } else {
        expected.emplace_back(i, i + 1);
      }
    }
    CAPTURE(turn);
    REQUIRE(pairs(set.within({0, kNumbers})) == expected);
    for (std::uint64_t i = 0; i < kNumbers; ++i)
      REQUIRE(set.around(i).has_value() == static_cast<bool>(model[i]));
  }
}

TEST_CASE("the part of a range that is in the set is cut to the range") {
  RangeSet set;
  set.add({10, 20});
  set.add({30, 40});
  CHECK(pairs(set.within({15, 35})) == Pairs{{15, 20}, {30, 35}});
  CHECK(set.within({20, 30}).empty());
  CHECK(pairs({*set.first_of(10, 1)}) == Pairs{{10, 20}});
  CHECK(pairs({*set.first_of(5, 4)}) == Pairs{{12, 17}});
  CHECK(pairs({*set.first_of(8, 16)}) == Pairs{{32, 40}});
  CHECK_FALSE(set.first_of(11, 1).has_value());
}

TEST_CASE("pieces are aligned, do not overlap, and all come back") {
  constexpr std::uint64_t kBytes = 1 << 20;
  std::mt19937_64 random(7);
  RangeAllocator allocator(kBytes);
  std::vector<RangeSet::Range> live;
  for (int turn = 0; turn < 5000; ++turn) {
    if (live.empty() || random() % 3 != 0) {
      const std::uint64_t alignment = random() % 2 == 0 ? 64 : 4096;
      const std::uint64_t size = 1 + random() % 30'000;
      const auto begin = allocator.allocate(size, alignment);
      if (!begin) continue;
      REQUIRE(*begin % alignment == 0);
      REQUIRE(*begin + size <= kBytes);
      for (const RangeSet::Range& other : live)
        REQUIRE((*begin >= other.end || *begin + size <= other.begin));
      live.push_back({*begin, *begin + size});
    } else {
      std::swap(live[random() % live.size()], live.back());
      const auto gap = allocator.free(live.back().begin);
      REQUIRE(gap.has_value());
      REQUIRE((gap->begin <= live.back().begin && gap->end >= live.back().end));
      live.pop_back();
    }
  }
  CHECK_FALSE(allocator.free(1).has_value());
  for (const RangeSet::Range& piece : live) REQUIRE(allocator.free(piece.begin).has_value());
  CHECK(allocator.allocated_bytes() == 0);
  CHECK(allocator.allocate(kBytes, 64) == 0);
  CHECK_FALSE(allocator.allocate(1, 64).has_value());
}

}  // namespace
}  // namespace allring
