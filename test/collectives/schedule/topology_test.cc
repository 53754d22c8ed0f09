#include "collectives/schedule/topology.h"

#include <catch2/catch.hpp>

namespace allring {
namespace {

TEST_CASE("hosts are numbered by their lowest rank, whatever their names") {
  const Topology topology({"z", "a", "z", "a", "m"});
  REQUIRE(topology.size() == 5);
  REQUIRE(topology.hosts() == 3);
  REQUIRE(topology.host(0) == 0);
  REQUIRE(topology.host(1) == 1);
  REQUIRE(topology.host(4) == 2);
  REQUIRE(topology.ranks_on(0) == std::vector<Rank>{0, 2});
  REQUIRE(topology.local_rank(2) == 1);
  REQUIRE(topology.local_size(3) == 2);
  REQUIRE(topology.local_size(4) == 1);
  REQUIRE(topology.cross_ranks(0) == std::vector<Rank>{0, 1, 4});
  REQUIRE(topology.cross_ranks(3) == std::vector<Rank>{2, 3});
  REQUIRE_FALSE(topology.homogeneous());
}

TEST_CASE("hosts with equally many ranks are homogeneous") {
  REQUIRE(Topology({"a", "b", "b", "a"}).homogeneous());
  REQUIRE(Topology({"a", "b"}).homogeneous());
}

TEST_CASE("a single host holds all ranks") {
  for (int n = 1; n <= 64; ++n) {
    const Topology topology = Topology::single_host(n);
    REQUIRE(topology.hosts() == 1);
    REQUIRE(topology.homogeneous());
    REQUIRE(topology.local_size(n - 1) == n);
    REQUIRE(topology.local_rank(n - 1) == n - 1);
    REQUIRE(topology.cross_ranks(n - 1) == std::vector<Rank>{n - 1});
  }
}

TEST_CASE("a topology of nobody has no hosts") {
  REQUIRE(Topology().hosts() == 0);
  REQUIRE(Topology(std::vector<std::string>{}).size() == 0);
  REQUIRE(Topology().homogeneous());
}

}  // namespace
}  // namespace allring
