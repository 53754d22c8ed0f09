#include "collectives/transport/group.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "collectives/transport/heap_host_memory.h"
#include "collectives/transport/inproc.h"

namespace allring {
namespace {

Deadline soon() { return deadline_after(seconds(20)); }

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST_CASE("a subgroup numbers its members anew over the parent's transport") {
  InprocNetwork network(5);
  const Topology topology({"a", "b", "a", "b", "b"});
  Group parent1(topology, network.transport(1), nullptr);
  Group parent4(topology, network.transport(4), nullptr);
  auto group1 = make_subgroup(parent1, {1, 3, 4}, nullptr);
  auto group4 = make_subgroup(parent4, {1, 3, 4}, nullptr);
  CHECK(group1->rank() == 0);
  CHECK(group4->rank() == 2);
  CHECK(group1->size() == 3);
  CHECK(group1->topology().hosts() == 1);

  std::string got(3, ' ');
  const Ticket sent = group1->transport().post_send(2, 1, bytes_of("abc")).value();
  const Ticket received =
      group4->transport().post_recv(0, 1, std::as_writable_bytes(std::span(got))).value();
  CHECK(group1->transport().wait(sent, soon()).ok());
  CHECK(group4->transport().wait(received, soon()).ok());
  CHECK(got == "abc");
}

TEST_CASE("a hierarchy has the ranks of this host and those of equal place on the others") {
  InprocNetwork network(6);
  const Topology topology({"a", "a", "b", "b", "c", "c"});
  auto local_memory = make_heap_host_memory({.ranks = 2, .buffers = 3, .slot_bytes = 4096}, {});
  Group group(topology, network.transport(3), nullptr);
  build_hierarchy(group, local_memory[1].get());
  REQUIRE(group.local() != nullptr);
  REQUIRE(group.cross() != nullptr);
  CHECK(group.local()->size() == 2);
  CHECK(group.local()->rank() == 1);
  CHECK(group.local()->host_memory() == local_memory[1].get());
  CHECK(group.cross()->size() == 3);
  CHECK(group.cross()->rank() == 1);
  CHECK(group.cross()->host_memory() == nullptr);
  CHECK(group.cross()->topology().hosts() == 3);
}

TEST_CASE("ranks of equal place are in the order of hosts, whatever their numbers") {
  InprocNetwork network(4);
  const Topology topology({"a", "b", "b", "a"});
  Group group(topology, network.transport(2), nullptr);
  build_hierarchy(group, nullptr);
  CHECK(group.cross()->rank() == 1);
  Group peer(topology, network.transport(3), nullptr);
  build_hierarchy(peer, nullptr);
  CHECK(peer.cross()->rank() == 0);
}

TEST_CASE("one host, or hosts of unequal size, make no hierarchy") {
  InprocNetwork network(3);
  for (const Topology& topology : {Topology::single_host(3), Topology({"a", "a", "b"})}) {
    Group group(topology, network.transport(0), nullptr);
    build_hierarchy(group, nullptr);
    CHECK(group.local() == nullptr);
    CHECK(group.cross() == nullptr);
  }
}

TEST_CASE("tags count up equally on all ranks, scratch is kept and grows") {
  InprocNetwork network(2);
  Group a(Topology::single_host(2), network.transport(0), nullptr);
  Group b(Topology::single_host(2), network.transport(1), nullptr);
  CHECK(a.next_tag() == b.next_tag());
  CHECK(a.next_tag() != 1);

  const auto large = a.scratch(100000).value();
  CHECK(large.size() == 100000);
  CHECK(reinterpret_cast<std::uintptr_t>(large.data()) % 4096 == 0);
  const auto small = a.scratch(10).value();
  CHECK(small.size() == 10);
  CHECK(small.data() == large.data());
}

TEST_CASE("aborting a group ends its transport, its memory and its subgroups") {
  InprocNetwork network(4);
  const Topology topology({"a", "a", "b", "b"});
  auto local_memory = make_heap_host_memory({.ranks = 2, .buffers = 3, .slot_bytes = 4096}, {});
  Group group(topology, network.transport(0), nullptr);
  build_hierarchy(group, local_memory[0].get());
  group.abort(Status::aborted("shut down"));
  CHECK(local_memory[0]->wait_at_least(0, 1, 1, soon()).to_string() == "aborted: shut down");
  const Ticket sent = group.cross()->transport().post_send(1, 1, {}).value();
  CHECK(group.transport().wait(sent, soon()).to_string() == "aborted: shut down");
}

}  // namespace
}  // namespace allring
