#include "collectives/transport/peer_info.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <random>

namespace allring {
namespace {

PeerInfo example(Rank rank) {
  PeerInfo info;
  info.rank = rank;
  info.hostname = "b";
  info.host_key = "boot net:[1] user:[2]";
  info.pid = 123;
  info.uid = 1000;
  info.unix_name = "allring-123-abc";
  info.addresses = {{{"10.1.2.3", 4711}, 24}, {{"fd00::1", 65535}, 64}};
  info.shared_memory = rank % 2 == 0;
  info.core_mask = std::string("\x00\x81", 2);
  return info;
}

std::string wire(const PeerInfo& info) {
  std::string text;
  info.append_to(&text);
  return text;
}

TEST_CASE("an info survives the wire, and says where it ends") {
  const std::string text = wire(example(2)) + wire(example(7));
  std::string_view left = text;
  CHECK(PeerInfo::parse(&left).value() == example(2));
  CHECK(PeerInfo::parse(&left).value() == example(7));
  CHECK(left.empty());
  CHECK(example(2).describe() == "rank 2 (host b, pid 123)");
}

TEST_CASE("an info that is cut short anywhere is refused") {
  const std::string text = wire(example(2));
  for (std::size_t size = 0; size < text.size(); ++size) {
    std::string_view left = std::string_view(text).substr(0, size);
    CHECK(PeerInfo::parse(&left).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("damaged infos are refused or read as something else, never believed beyond bounds") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::string text = wire(example(2));
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    std::string_view left = damaged;
    const Result<PeerInfo> info = PeerInfo::parse(&left);
    if (!info.ok()) continue;
    CHECK(info->rank >= 0);
    CHECK(wire(*info).size() + left.size() == text.size());
  }
}

TEST_CASE("the list of a job's ranks is complete, ordered and ends") {
  const std::string list = wire(example(0)) + wire(example(1)) + wire(example(2));
  CHECK(parse_peers(list, 3).value().size() == 3);
  CHECK_THAT(parse_peers(list, 2).status().message(), Catch::Contains("follow the last of 2"));
  CHECK_THAT(parse_peers(list, 4).status().message(), Catch::Contains("rank 3 of 4"));
  const std::string twisted = wire(example(1)) + wire(example(0));
  CHECK_THAT(parse_peers(twisted, 2).status().message(),
             Catch::Contains("rank 1 stands in the place of rank 0"));
}

TEST_CASE("networks are compared by the shorter prefix") {
  const auto address = [](const char* ip, int bits) { return PeerInfo::Address{{ip, 1}, bits}; };
  CHECK(same_network(address("10.1.2.3", 24), address("10.1.2.200", 24)));
  CHECK_FALSE(same_network(address("10.1.2.3", 24), address("10.1.3.3", 24)));
  CHECK(same_network(address("10.1.2.3", 23), address("10.1.3.3", 24)));
  CHECK(same_network(address("10.1.2.3", 17), address("10.1.127.255", 17)));
  CHECK_FALSE(same_network(address("10.1.2.3", 17), address("10.1.128.0", 17)));
  CHECK(same_network(address("fd00::1", 64), address("fd00::ffff:1", 64)));
  CHECK_FALSE(same_network(address("fd00::1", 64), address("fd01::1", 64)));
  CHECK_FALSE(same_network(address("10.1.2.3", 24), address("fd00::1", 64)));
  CHECK_FALSE(same_network(address("nonsense", 24), address("nonsense", 24)));
}

TEST_CASE("this process knows its own host") {
  const std::string key = this_host_key().value();
  CHECK(key == this_host_key().value());
  CHECK_THAT(key, Catch::Contains("net:["));

  const auto loopback = interface_addresses("", true).value();
  CHECK(loopback.front().tcp.ip == "127.0.0.1");
  CHECK(loopback.front().prefix_bits == 8);
  CHECK(interface_addresses("lo", false).value().front().tcp.ip == "127.0.0.1");
  const Result<std::vector<PeerInfo::Address>> unknown = interface_addresses("lo,nosuch0", false);
  CHECK(unknown.status().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(unknown.status().message(),
             Catch::Contains("'nosuch0'") && Catch::Contains("lo (127.0.0.1)"));
}

}  // namespace
}  // namespace allring
