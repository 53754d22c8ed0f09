#include "collectives/schedule/chunks.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>

namespace allring {
namespace {

const std::size_t kCounts[] = {0,
                               1,
                               2,
                               3,
                               7,
                               8,
                               15,
                               16,
                               17,
                               31,
                               63,
                               64,
                               65,
                               97,
                               1000,
                               1003,
                               65537,
                               std::size_t{5} << 32,
                               SIZE_MAX / 8,
                               SIZE_MAX / 8 - 1};

TEST_CASE("even chunks tile the vector, and the first are the larger ones") {
  for (int parts = 1; parts <= 64; ++parts) {
    for (const std::size_t count : kCounts) {
      CAPTURE(parts, count);
      std::size_t next = 0;
      bool right = true;
      for (int i = 0; i < parts; ++i) {
        const Chunk chunk = even_chunk(count, parts, i);
        const bool larger = static_cast<std::size_t>(i) < count % parts;
        right &= chunk.offset == next && chunk.count == count / parts + (larger ? 1 : 0);
        next = chunk.end();
      }
      REQUIRE(right);
      REQUIRE(next == count);
    }
  }
}

TEST_CASE("even counts are those of reducescatter") {
  REQUIRE(even_counts(10, 4) == std::vector<std::size_t>{3, 3, 2, 2});
  REQUIRE(even_counts(2, 4) == std::vector<std::size_t>{1, 1, 0, 0});
  REQUIRE(even_counts(0, 2) == std::vector<std::size_t>{0, 0});
}

TEST_CASE("aligned chunks tile the vector and meet at cache lines") {
  for (const std::size_t element_bytes : {1, 2, 4, 8}) {
    for (int parts = 1; parts <= 64; ++parts) {
      for (const std::size_t count : kCounts) {
        CAPTURE(parts, count, element_bytes);
        const std::size_t per_line = kCacheLineBytes / element_bytes;
        std::size_t next = 0, smallest = SIZE_MAX, largest = 0;
        bool aligned = true, tiled = true;
        for (int i = 0; i < parts; ++i) {
          const Chunk chunk = aligned_chunk(count, element_bytes, parts, i);
          tiled &= chunk.offset == next;
          aligned &= chunk.offset == count || chunk.offset % per_line == 0;
          next = chunk.end();
          largest = std::max(largest, chunk.count);
          // The chunk that holds the vector's end may lack up to a line more.
          if (chunk.end() != count) smallest = std::min(smallest, chunk.count);
        }
        REQUIRE(tiled);
        REQUIRE(aligned);
        REQUIRE(next == count);
        if (smallest != SIZE_MAX) REQUIRE(largest - smallest <= per_line);
      }
    }
  }
}

TEST_CASE("offsets are prefix sums with the total at the end") {
  REQUIRE(offsets_of(std::vector<std::size_t>{3, 0, 2}) == std::vector<std::size_t>{0, 3, 3, 5});
  REQUIRE(offsets_of({}) == std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace allring
