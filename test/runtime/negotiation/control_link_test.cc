// One control connection: messages in parts, and bytes that arrive changed.
#include "runtime/negotiation/control_link.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <random>

namespace allring {
namespace {

using Messages = std::vector<std::vector<std::byte>>;

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

struct Pair {
  std::pair<Fd, Fd> sockets = socket_pair().value();
  ControlLink one{
      1,          1, "rank 1 (host b, pid 11)", "rank 0 (host a, pid 10)", std::move(sockets.first),
      TimePoint()};
  ControlLink other{0,
                    0,
                    "rank 0 (host a, pid 10)",
                    "rank 1 (host b, pid 11)",
                    std::move(sockets.second),
                    TimePoint()};
};

TEST_CASE("messages longer than a part arrive whole and in order") {
  Pair pair;
  Messages sent;
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{5}, kControlPartBytes - 1, kControlPartBytes,
        kControlPartBytes + 1, 3 * kControlPartBytes, std::size_t{65} << 20, std::size_t{1}}) {
    sent.push_back(random_bytes(count, count));
    pair.one.queue(sent.back());
    pair.one.queue_sign_of_life();
  }
  Messages received;
  while (pair.one.has_queued() || received.size() < sent.size()) {
    pair.one.write();
    REQUIRE(pair.other.read(TimePoint(), &received).ok());
  }
  CHECK(received == sent);
}

TEST_CASE("a message of which a bit was changed on the way is never delivered") {
  const std::vector<std::byte> message = random_bytes(40, 7);
  // What travels, to be changed in between.
  std::vector<std::byte> frame(1000);
  {
    Pair pair;
    pair.one.queue(message);
    pair.one.write();
    const ssize_t got = recv(pair.other.fd(), frame.data(), frame.size(), MSG_DONTWAIT);
    REQUIRE(got > static_cast<ssize_t>(message.size()));
    frame.resize(static_cast<std::size_t>(got));
  }
  for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
    Pair pair;
    std::vector<std::byte> changed = frame;
    changed[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    REQUIRE(send(pair.one.fd(), changed.data(), changed.size(), 0) ==
            static_cast<ssize_t>(changed.size()));
    Messages received;
    const Status status = pair.other.read(TimePoint(), &received);
    INFO("bit " << bit);
    REQUIRE(status.code() == StatusCode::kPeerLost);
    REQUIRE_THAT(status.message(),
                 Catch::Contains("from rank 0 (host a, pid 10) to rank 1 (host b, pid 11)") &&
                     Catch::Contains("CRC32C"));
    REQUIRE(received.empty());
  }
}

TEST_CASE("a peer that announces too much at once is not believed") {
  Pair pair;
  // 16 MiB and 0xffffff bytes, with the right checksum: from another version.
  const unsigned char header[] = {0xff, 0xff, 0xff, 0x01};
  std::vector<std::byte> bytes;
  for (const unsigned char byte : header) bytes.push_back(static_cast<std::byte>(byte));
  std::uint32_t crc = 0xffffffff;
  for (const unsigned char byte : header) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(crc >> (8 * i)));
  REQUIRE(send(pair.one.fd(), bytes.data(), bytes.size(), 0) == 8);
  Messages received;
  CHECK_THAT(pair.other.read(TimePoint(), &received).message(), Catch::Contains("another version"));
}

}  // namespace
}  // namespace allring
