#include "collectives/transport/handshake.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <future>
#include <random>
#include <vector>

#include "collectives/transport/socket.h"

namespace allring {
namespace {

using Bytes = std::vector<std::byte>;

const Hello kHello{.channel = 77, .from_rank = 3, .to_rank = 5, .epoch = 2};

Deadline soon() { return deadline_after(seconds(20)); }

std::pair<Fd, Fd> pair_of_sockets() { return socket_pair().value(); }

std::pair<Fd, Fd> tcp_pair() {
  const Fd listener = listen_tcp({"127.0.0.1", 0}).value();
  Fd client = connect_tcp({"127.0.0.1", local_port(listener.get()).value()}, soon()).value();
  REQUIRE(wait_ready(listener.get(), POLLIN, soon()).ok());
  return {std::move(client), accept_connection(listener.get()).value()};
}

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// What the client sends in a handshake that succeeds.
Bytes record_client() {
  auto [client, near] = pair_of_sockets();
  auto [far, server] = pair_of_sockets();
  auto served = std::async(std::launch::async, [&, fd = server.get()] {
    return server_handshake(fd, "secret", soon()).status();
  });
  auto connected = std::async(std::launch::async, [&, fd = client.get()] {
    return client_handshake(fd, "secret", kHello, soon());
  });
  Bytes recorded;
  bool done = false;
  while (!done) {
    pollfd fds[2] = {{near.get(), POLLIN, 0}, {far.get(), POLLIN, 0}};
    poll(fds, 2, 20);
    std::byte buffer[4096];
    if (const ssize_t n = recv(near.get(), buffer, sizeof(buffer), 0); n > 0) {
      recorded.insert(recorded.end(), buffer, buffer + n);
      REQUIRE(write_full(far.get(), std::span(buffer, n), soon()).ok());
    }
    if (const ssize_t n = recv(far.get(), buffer, sizeof(buffer), 0); n > 0) {
      REQUIRE(write_full(near.get(), std::span(buffer, n), soon()).ok());
    }
    done = connected.wait_for(seconds(0)) == std::future_status::ready;
  }
  REQUIRE(connected.get().ok());
  REQUIRE(served.get().ok());
  return recorded;
}

TEST_CASE("both sides learn what they need, over unix sockets and TCP") {
  const bool tcp = GENERATE(false, true);
  auto [client, server] = tcp ? tcp_pair() : pair_of_sockets();
  auto served = std::async(std::launch::async,
                           [fd = server.get()] { return server_handshake(fd, "secret", soon()); });
  const Status connected = client_handshake(client.get(), "secret", kHello, soon());
  const Result<Hello> hello = served.get();
  REQUIRE(connected.to_string() == "ok");
  REQUIRE(hello.ok());
  CHECK(*hello == kHello);

  // Nothing of the handshake is left on the connection, and nothing was taken that follows it.
  REQUIRE(write_full(client.get(), bytes_of("x"), soon()).ok());
  std::byte got{};
  REQUIRE(read_full(server.get(), std::span(&got, 1), soon()).ok());
  CHECK(got == std::byte{'x'});
}

TEST_CASE("another secret is refused on both sides") {
  const std::string other = GENERATE("secreT", "secret ", "s", "");
  auto [client, server] = pair_of_sockets();
  auto served = std::async(std::launch::async, [fd = server.get()] {
    return server_handshake(fd, "secret", soon()).status();
  });
  const Status connected = client_handshake(client.get(), other, kHello, soon());
  CHECK(connected.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(connected.message(), Catch::Contains("different secrets"));
  CHECK_THAT(served.get().message(), Catch::Contains("does not know this job's secret"));
}

TEST_CASE("a server that does not know the secret is found out") {
  auto [client, server] = pair_of_sockets();
  auto served = std::async(std::launch::async, [fd = server.get()] {
    // Lets everybody in, as an impostor would: it answers with a proof under a key of its own.
    std::byte message[256];
    (void)read_full(fd, std::span(message, 44), soon());
    (void)write_full(fd, std::span(message, 44), soon());
    (void)read_full(fd, std::span(message, 48), soon());
    Bytes verdict(4 + 32 + 128);
    verdict[0] = std::byte{1};
    return write_full(fd, verdict, soon());
  });
  const Status connected = client_handshake(client.get(), "secret", kHello, soon());
  CHECK(served.get().ok());
  CHECK(connected.code() == StatusCode::kInvalidArgument);
}

TEST_CASE("who is turned away hears why") {
  auto [client, server] = pair_of_sockets();
  auto served = std::async(std::launch::async, [fd = server.get()] {
    return server_handshake(fd, "secret", soon(),
                            [](const Hello& hello) {
                              return "no rank " + std::to_string(hello.from_rank) + " here\n";
                            })
        .status();
  });
  const Status connected = client_handshake(client.get(), "secret", kHello, soon());
  CHECK(served.get().code() == StatusCode::kInvalidArgument);
  CHECK(connected.code() == StatusCode::kPeerLost);
  CHECK_THAT(connected.message(), Catch::EndsWith("no rank 3 here?"));
}

TEST_CASE("a recorded conversation cannot be played again") {
  const Bytes recorded = record_client();
  REQUIRE(recorded.size() == 44 + 48);
  auto [client, server] = pair_of_sockets();
  REQUIRE(write_full(client.get(), recorded, soon()).ok());
  const Result<Hello> hello = server_handshake(server.get(), "secret", soon());
  CHECK_THAT(hello.status().message(), Catch::Contains("does not know this job's secret"));
}

TEST_CASE("an echo does not prove anything") {
  auto [client, mirror] = pair_of_sockets();
  auto echoed = std::async(std::launch::async, [fd = mirror.get()] {
    std::byte byte;
    while (read_full(fd, std::span(&byte, 1), deadline_after(milliseconds(300))).ok()) {
      if (!write_full(fd, std::span(&byte, 1), soon()).ok()) break;
    }
  });
  CHECK_FALSE(client_handshake(client.get(), "secret", kHello, deadline_after(seconds(1))).ok());
  client.reset();
  echoed.get();
}

TEST_CASE("what is no greeting is dropped at the first wrong byte, without an answer") {
  auto [client, server] = pair_of_sockets();
  REQUIRE(write_full(client.get(), bytes_of("GET /"), soon()).ok());
  ServerHandshake handshake(server.get(), "secret", {});
  CHECK_THAT(handshake.advance().status().message(), Catch::Contains("not a process of Allring"));
  std::byte answer;
  CHECK(recv(client.get(), &answer, 1, MSG_DONTWAIT) < 0);
}

TEST_CASE("random bytes are never let in") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const Bytes recorded = record_client();
  for (int round = 0; round < 300; ++round) {
    auto [client, server] = pair_of_sockets();
    Bytes sent = recorded;
    sent.resize(random() % 200);
    const std::size_t keep = random() % 60;  // of a well-formed beginning
    for (std::size_t i = keep; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(random());
    REQUIRE(write_full(client.get(), sent, soon()).ok());
    shutdown(client.get(), SHUT_WR);
    CHECK_FALSE(server_handshake(server.get(), "secret", soon()).ok());
  }
}

TEST_CASE("more than the protocol asks for is not read") {
  auto [client, server] = pair_of_sockets();
  Bytes sent = record_client();
  sent.resize(100'000, std::byte{0x5a});
  REQUIRE(write_full(client.get(), sent, soon()).ok());
  CHECK_FALSE(server_handshake(server.get(), "secret", soon()).ok());
  Bytes left(200'000);
  const ssize_t unread = recv(server.get(), left.data(), left.size(), MSG_DONTWAIT);
  CHECK(unread == 100'000 - 44 - 48);
}

TEST_CASE("who says nothing more is given up at the deadline") {
  auto [client, server] = pair_of_sockets();
  const Bytes greeting = record_client();
  REQUIRE(write_full(client.get(), std::span(greeting).first(20), soon()).ok());
  const Result<Hello> hello =
      server_handshake(server.get(), "secret", deadline_after(milliseconds(30)));
  CHECK(hello.status().code() == StatusCode::kTimedOut);
  CHECK(client_handshake(client.get(), "secret", kHello, deadline_after(milliseconds(30))).code() ==
        StatusCode::kTimedOut);
}

TEST_CASE("a closed connection and a cancelled wait end both sides") {
  auto [client, server] = pair_of_sockets();
  const Fd cancel = make_event().value();
  signal_event(cancel.get());
  CHECK(client_handshake(client.get(), "secret", kHello, soon(), cancel.get()).code() ==
        StatusCode::kAborted);
  client.reset();
  CHECK(server_handshake(server.get(), "secret", soon()).status().code() == StatusCode::kPeerLost);
}

TEST_CASE("another version is told apart from a stranger") {
  auto [client, server] = pair_of_sockets();
  Bytes greeting = record_client();
  greeting[8] = std::byte{9};
  REQUIRE(write_full(client.get(), std::span(greeting).first(44), soon()).ok());
  const Result<Hello> hello = server_handshake(server.get(), "secret", soon());
  CHECK_THAT(hello.status().message(),
             Catch::Contains("version 9") && Catch::Contains("version 1"));
  std::byte answer[44];
  CHECK(read_full(client.get(), answer, soon()).ok());  // it can say the same
}

TEST_CASE("without a secret, unix sockets of one user work and TCP does not") {
  const bool tcp = GENERATE(false, true);
  auto [client, server] = tcp ? tcp_pair() : pair_of_sockets();
  auto served = std::async(std::launch::async, [fd = server.get()] {
    return server_handshake(fd, "", soon()).status();
  });
  const Status connected = client_handshake(client.get(), "", kHello, soon());
  if (tcp) {
    CHECK_THAT(connected.message(), Catch::Contains("without a secret"));
    CHECK_THAT(served.get().message(), Catch::Contains("without a secret"));
  } else {
    CHECK(connected.ok());
    CHECK(served.get().ok());
  }
}

}  // namespace
}  // namespace allring
