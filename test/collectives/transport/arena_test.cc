#include "collectives/transport/arena.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "collectives/transport/share_arena.h"
#include "test/collectives/transport/endpoints.h"

namespace allring {
namespace {

constexpr std::size_t kMiB = 1 << 20;

/// The memory that a file holds.
std::size_t held_bytes(const Segment& segment) {
  struct stat about {};
  REQUIRE(fstat(segment.fd(), &about) == 0);
  return static_cast<std::size_t>(about.st_blocks) * 512;
}

struct Pair {
  explicit Pair(std::size_t bytes_per_rank)
      : shape(Arena::Shape::of(2, bytes_per_rank)),
        memory(Segment::create_sparse(shape.bytes()).value()),
        first(memory, shape, 0),
        second(memory, shape, 1) {}

  Arena::Shape shape;
  std::shared_ptr<Segment> memory;
  Arena first, second;
};

/// Whether memory of so many bytes is held; huge pages may make it a little more.
bool holds(const Pair& pair, std::size_t bytes) {
  const std::size_t held = held_bytes(*pair.memory);
  return held >= bytes && held <= bytes + 4 * kMiB;
}

TEST_CASE("a rank finds what another one has written, by its offset") {
  Pair pair(8 * kMiB);
  std::byte* const data = *pair.second.allocate(5000);
  std::memset(data, 9, 5000);
  const std::uint64_t offset = pair.second.offset_of(data + 100, 4900);
  REQUIRE(offset != Arena::kOutside);
  CHECK(pair.first.at(1, offset)[4899] == std::byte{9});
  CHECK(pair.first.offset_of(data, 1) == Arena::kOutside);  // not its own
  int local = 0;
  CHECK(pair.second.offset_of(&local, sizeof(local)) == Arena::kOutside);
  CHECK(pair.second.offset_of(data, pair.shape.region_bytes + 1) == Arena::kOutside);
}

TEST_CASE("memory is taken when a piece is handed out, and given back") {
  Pair pair(256 * kMiB);
  CHECK(held_bytes(*pair.memory) == 0);
  std::byte* const small = *pair.first.allocate(100);
  CHECK(holds(pair, kMiB));
  constexpr std::size_t kLarge = Arena::kLeastGivenBackBytes;
  std::byte* const large = *pair.first.allocate(kLarge);
  CHECK(reinterpret_cast<std::uintptr_t>(large) % 4096 == 0);
  CHECK(holds(pair, kLarge + kMiB));
  std::memset(large, 1, kLarge);
  REQUIRE(pair.first.free(large));
  CHECK(holds(pair, 4096));  // the small one's
  CHECK_FALSE(pair.first.free(large));
  std::byte* const again = *pair.first.allocate(kMiB);
  CHECK(again == large);
  CHECK(again[0] == std::byte{0});
  CHECK(pair.first.allocated_bytes() == kMiB + 128);
  CHECK(pair.first.free(small));
  int local = 0;
  CHECK_FALSE(pair.first.free(&local));
}

TEST_CASE("a small piece that is freed keeps its memory for the next") {
  Pair pair(8 * kMiB);
  std::byte* const piece = *pair.first.allocate(64 << 10);
  REQUIRE(pair.first.free(piece));
  CHECK(holds(pair, kMiB));
  CHECK(*pair.first.allocate(64 << 10) == piece);
  CHECK(holds(pair, kMiB));
}

TEST_CASE("what does not fit is refused in words") {
  Pair pair(8 * kMiB);
  const Result<std::byte*> refused = pair.first.allocate(pair.shape.region_bytes + 1);
  CHECK(refused.status().code() == StatusCode::kOutOfMemory);
  CHECK_THAT(refused.status().message(), Catch::Contains("ALLRING_ARENA_BYTES"));
  CHECK(pair.first.allocate(0).ok());
  // More than any machine has.
  const Arena::Shape huge = Arena::Shape::of(1, std::size_t{1} << 45);
  const auto memory = Segment::create_sparse(huge.bytes());
  if (!memory.ok()) return;  // a limit on files or address space is in the way, in words
  Arena arena(*memory, huge, 0);
  const Result<std::byte*> too_much = arena.allocate(std::size_t{1} << 45);
  CHECK(too_much.status().code() == StatusCode::kOutOfMemory);
  CHECK_THAT(too_much.status().message(), Catch::Contains("leaves"));
  CHECK(arena.allocate(100).ok());
}

TEST_CASE("regions lie at distances that are no power of two") {
  for (std::size_t mib : {1, 64, 128, 256, 512, 1024, 4096}) {
    const std::size_t distance = Arena::Shape::of(2, mib * kMiB).region_bytes;
    CHECK(distance >= mib * kMiB);
    CHECK(distance % (64 * kMiB) != 0);
  }
}

TEST_CASE("the ranks of a host share one") {
  Endpoints endpoints({"a", "b", "a"});
  const std::vector<Rank> members = {0, 2};
  auto arenas = on_ranks(2, [&](int index) {
    return share_arena(endpoints[members[index]], 0, members, 8 * kMiB, soon());
  });
  for (auto& arena : arenas) {
    REQUIRE(arena.status().to_string() == "ok");
    REQUIRE(*arena != nullptr);
  }
  Arena& first = **arenas[0];
  Arena& second = **arenas[1];
  CHECK(first.rank() == 0);
  CHECK(second.rank() == 1);
  std::byte* const data = *second.allocate(3 * kMiB);
  data[3 * kMiB - 1] = std::byte{5};
  CHECK(first.at(1, second.offset_of(data, 3 * kMiB))[3 * kMiB - 1] == std::byte{5});
  CHECK(share_arena(endpoints[1], 0, {1}, 8 * kMiB, soon()).value() == nullptr);
}

}  // namespace
}  // namespace allring
