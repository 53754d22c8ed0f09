#include "launcher/placement.h"

#include <catch2/catch.hpp>

namespace allring {
namespace {

/// "h0: 0(0/2 0/2) 1(1/2 0/1)": each rank with its local and cross numbers.
std::string placed(const std::vector<Host>& hosts, std::optional<int> size,
                   bool oversubscribe = false) {
  Result<Placement> placement = place(hosts, size, oversubscribe);
  if (!placement.ok()) return placement.status().message();
  std::string text;
  int count = 0;
  for (const PlacedHost& host : placement->hosts) {
    text += host.host.name + ":";
    for (const PlacedRank& rank : host.ranks) {
      text += " " + std::to_string(rank.rank) + "(" + std::to_string(rank.local_rank) + "/" +
              std::to_string(rank.local_size) + " " + std::to_string(rank.cross_rank) + "/" +
              std::to_string(rank.cross_size) + ")";
      ++count;
    }
    text += "; ";
  }
  CHECK(count == placement->size);
  return text;
}

Host host(const char* name, int slots, int max_slots = 0) {
  return {"", name, slots, max_slots, false};
}

TEST_CASE("ranks fill one host after the other") {
  CHECK(placed({host("a", 2), host("b", 2)}, 4) ==
        "a: 0(0/2 0/2) 1(1/2 0/2); b: 2(0/2 1/2) 3(1/2 1/2); ");
  CHECK(placed({host("a", 1), host("b", 2)}, std::nullopt) ==
        "a: 0(0/1 0/2); b: 1(0/2 1/2) 2(1/2 0/1); ");
  CHECK(placed({host("a", 8)}, 1) == "a: 0(0/1 0/1); ");
}

TEST_CASE("hosts without ranks are left out") {
  CHECK(placed({host("a", 2), host("b", 2)}, 2) == "a: 0(0/2 0/1) 1(1/2 0/1); ");
}

TEST_CASE("cross numbers count only hosts with so many ranks") {
  CHECK(placed({host("a", 1), host("b", 2), host("c", 2)}, 5) ==
        "a: 0(0/1 0/3); b: 1(0/2 1/3) 2(1/2 0/2); c: 3(0/2 2/3) 4(1/2 1/2); ");
}

TEST_CASE("more ranks than slots") {
  CHECK_THAT(
      placed({host("a", 1), host("b", 2)}, 4),
      Catch::Contains("-np 4 is more than the 3 slots") && Catch::Contains("--oversubscribe"));
  // The fourth and fifth are dealt out, and ranks of a host stay together.
  CHECK(placed({host("a", 1), host("b", 2)}, 5, true) ==
        "a: 0(0/2 0/2) 1(1/2 0/2); b: 2(0/3 1/2) 3(1/3 1/2) 4(2/3 0/1); ");
}

TEST_CASE("max_slots holds in spite of oversubscribing") {
  CHECK(placed({host("a", 1, 1), host("b", 1, 2)}, 3, true) ==
        "a: 0(0/1 0/2); b: 1(0/2 1/2) 2(1/2 0/1); ");
  CHECK_THAT(placed({host("a", 1, 1), host("b", 1, 2)}, 4, true), Catch::Contains("max_slots"));
}

TEST_CASE("every size is placed whole and in order") {
  const std::vector<Host> hosts = {host("a", 3), host("b", 1), host("c", 4), host("d", 2)};
  for (int size = 1; size <= 10; ++size) {
    Result<Placement> placement = place(hosts, size, false);
    REQUIRE(placement.ok());
    int next = 0;
    for (const PlacedHost& each : placement->hosts) {
      CHECK(static_cast<int>(each.ranks.size()) <= each.host.slots);
      for (const PlacedRank& rank : each.ranks) CHECK(rank.rank == next++);
    }
    CHECK(next == size);
  }
}

}  // namespace
}  // namespace allring
