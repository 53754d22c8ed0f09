#include "collectives/transport/endpoint.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "test/collectives/transport/endpoints.h"

namespace allring {
namespace {

Status say(int fd, std::uint32_t word) {
  return write_full(fd, std::as_bytes(std::span(&word, 1)), soon());
}

Result<std::uint32_t> hear(int fd) {
  std::uint32_t word = 0;
  ALLRING_RETURN_IF_ERROR(read_full(fd, std::as_writable_bytes(std::span(&word, 1)), soon()));
  return word;
}

/// TCP sockets of this process that listen.
int tcp_listeners() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    int listening = 0;
    socklen_t length = sizeof(listening);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0) continue;
    count += listening != 0 && !is_unix_socket(fd);
  }
  return count;
}

TEST_CASE("a connection reaches the one it is meant for, on its channel, either way") {
  Endpoints endpoints({"a", "a", "b"});
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}, {0, 2}, {2, 1}}) {
    Fd near = endpoints[from].connect(to, 64, soon()).value();
    CHECK_FALSE(endpoints[to].try_accept(65, from).value());
    Fd far = endpoints[to].accept(64, from, soon()).value();
    CHECK(is_unix_socket(near.get()) == (to != 2 && from != 2));
    REQUIRE(say(near.get(), 12).ok());
    CHECK(hear(far.get()).value() == 12);
    REQUIRE(say(far.get(), 13).ok());
    CHECK(hear(near.get()).value() == 13);
  }
}

TEST_CASE("connections of one rank and channel are taken in order of arrival") {
  Endpoints endpoints({"a", "a"});
  std::vector<Fd> near;
  for (std::uint32_t i = 0; i < 5; ++i) {
    near.push_back(endpoints[0].connect(1, 1, soon()).value());
    REQUIRE(say(near.back().get(), i).ok());
  }
  for (std::uint32_t i = 0; i < 5; ++i) {
    const Fd far = endpoints[1].accept(1, 0, soon()).value();
    CHECK(hear(far.get()).value() == i);
  }
}

TEST_CASE("everybody connects to everybody at once, from several threads") {
  const bool several_hosts = GENERATE(false, true);
  constexpr int kRanks = 5;
  constexpr int kChannels = 3;
  Endpoints endpoints(several_hosts ? std::vector<std::string>{"a", "b", "a", "c", "b"}
                                    : std::vector<std::string>(kRanks, "a"));
  const std::vector<Status> results = on_ranks(kRanks * kChannels, [&](int index) -> Status {
    const Rank rank = index / kChannels;
    const std::uint32_t channel = index % kChannels;
    std::vector<Fd> kept;
    for (Rank peer = 0; peer < kRanks; ++peer) {
      if (peer == rank) continue;
      ALLRING_ASSIGN_OR_RETURN(Fd fd, endpoints[rank].connect(peer, channel, soon()));
      ALLRING_RETURN_IF_ERROR(say(fd.get(), 100 * rank + 10 * peer + channel));
      kept.push_back(std::move(fd));
    }
    for (Rank peer = kRanks - 1; peer >= 0; --peer) {
      if (peer == rank) continue;
      ALLRING_ASSIGN_OR_RETURN(const Fd fd, endpoints[rank].accept(channel, peer, soon()));
      ALLRING_ASSIGN_OR_RETURN(const std::uint32_t word, hear(fd.get()));
      if (word != 100 * peer + 10 * rank + channel) return Status::internal("wrong connection");
    }
    return {};
  });
  for (const Status& status : results) CHECK(status.to_string() == "ok");
}

TEST_CASE("a job on one host listens on no TCP port; one on several hosts does") {
  const int before = tcp_listeners();
  Endpoints one_host({"a", "a"});
  CHECK(tcp_listeners() == before);
  CHECK(one_host[0].info().addresses.empty());
  Endpoints two_hosts({"a", "b"});
  CHECK(tcp_listeners() > before);
  CHECK(two_hosts[0].info().addresses.front().tcp.port != 0);
}

TEST_CASE("strangers come to nothing and keep nobody out") {
  Endpoints endpoints({"a", "b"});
  const std::string name = endpoints[1].info().unix_name;
  const TcpAddress address = endpoints[1].info().addresses.front().tcp;

  SECTION("another job's rank") {
    Endpoints others({"a", "b"}, [](Endpoint::Settings* settings) { settings->secret = "other"; });
    const Fd fd = connect_tcp(address, soon()).value();
    CHECK(client_handshake(fd.get(), "other", {1, 0, 1, 0}, soon()).code() ==
          StatusCode::kInvalidArgument);
  }
  SECTION("hundreds that connect and say nothing, and some that talk nonsense") {
    const unsigned seed = std::random_device()();
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<Fd> strangers;
    for (int i = 0; i < 400; ++i) {
      strangers.push_back(i % 2 ? connect_tcp(address, soon()).value()
                                : connect_unix(name, soon()).value());
      if (i % 10 == 0) (void)say(strangers.back().get(), static_cast<std::uint32_t>(random()));
    }
    Fd near = endpoints[0].connect(1, 1, soon()).value();
    Fd far = endpoints[1].accept(1, 0, soon()).value();
    REQUIRE(say(near.get(), 5).ok());
    CHECK(hear(far.get()).value() == 5);
  }
}

TEST_CASE("slow handshakes are dropped after their time") {
  Endpoints endpoints({"a", "a"}, [](Endpoint::Settings* settings) {
    settings->handshake_timeout = milliseconds(20);
  });
  const Fd stranger = connect_unix(endpoints[1].info().unix_name, soon()).value();
  std::byte byte;
  CHECK(read_full(stranger.get(), std::span(&byte, 1), soon()).code() == StatusCode::kPeerLost);
}

TEST_CASE("the wrong rank, epoch or sender is turned away with the reason") {
  Endpoints endpoints({"a", "a"},
                      [](Endpoint::Settings* settings) { settings->epoch = settings->rank; });
  const Status epoch = endpoints[0].connect(1, 1, soon()).status();
  CHECK(epoch.code() == StatusCode::kPeerLost);
  CHECK_THAT(epoch.message(), Catch::Contains("rank 0 (host a, pid") &&
                                  Catch::Contains("rank 1 (host a, pid") &&
                                  Catch::Contains("rank 1 is in epoch 1, not 0"));
  const auto try_hello = [&](const Hello& hello) {
    const Fd fd = connect_unix(endpoints[1].info().unix_name, soon()).value();
    return client_handshake(fd.get(), "a secret of the test's own", hello, soon()).message();
  };
  CHECK_THAT(try_hello({1, 0, 0, 1}), Catch::Contains("this is rank 1, not rank 0"));
  CHECK_THAT(try_hello({1, 1, 1, 1}), Catch::Contains("no peer with rank 1"));
  CHECK_THAT(try_hello({1, 2, 1, 1}), Catch::Contains("no peer with rank 2"));
  CHECK_THAT(try_hello({1, -1, 1, 1}), Catch::Contains("no peer with rank -1"));
  CHECK(try_hello({1, 0, 1, 1}).empty());
}

TEST_CASE("an address that leads elsewhere is passed over, and all that failed are listed") {
  Endpoints endpoints({"a", "b", "c"});
  std::vector<PeerInfo> infos;
  for (Rank rank = 0; rank < 3; ++rank) infos.push_back(endpoints[rank].info());
  Endpoint::Settings settings;
  settings.rank = 0;
  settings.size = 3;
  settings.hostname = settings.host_key = "d";
  settings.secret = "a secret of the test's own";
  settings.reach = Endpoint::Reach::kLoopback;
  std::unique_ptr<Endpoint> endpoint = Endpoint::start(settings).value();
  infos[0] = endpoint->info();
  const TcpAddress nobody = [] {
    const Fd listener = listen_tcp({"127.0.0.1", 0}).value();
    return TcpAddress{"127.0.0.1", local_port(listener.get()).value()};
  }();
  const PeerInfo::Address wrong = infos[2].addresses.front();
  infos[1].addresses.insert(infos[1].addresses.begin(), {{nobody, 8}, wrong});
  infos[2].addresses = {{nobody, 8}, infos[1].addresses.back()};
  endpoint->set_peers(infos);

  CHECK(endpoint->connect(1, 1, soon()).status().to_string() == "ok");
  const Status failed = endpoint->connect(2, 1, soon()).status();
  CHECK(failed.code() == StatusCode::kPeerLost);
  CHECK(failed.lost_rank() == 2);
  CHECK_THAT(failed.message(), Catch::Contains("rank 2 (host c") &&
                                   Catch::Contains(nobody.to_string() + ": Connection refused") &&
                                   Catch::Contains("this is rank 1, not rank 2"));
}

TEST_CASE("a rank that has ended is lost, by name") {
  const bool one_host = GENERATE(true, false);
  Endpoints endpoints({"a", one_host ? "a" : "b"});
  endpoints.end(1);
  const Status status = endpoints[0].connect(1, 1, soon()).status();
  CHECK(status.code() == StatusCode::kPeerLost);
  CHECK(status.lost_rank() == 1);
  CHECK_THAT(status.message(), Catch::Contains("rank 1 (host ") && Catch::Contains("refused"));
}

TEST_CASE("waiting ends at the deadline and names whom it waited for") {
  Endpoints endpoints({"a", "b"});
  const Status status = endpoints[0].accept(1, 1, deadline_after(milliseconds(20))).status();
  CHECK(status.code() == StatusCode::kTimedOut);
  CHECK_THAT(status.message(), Catch::Contains("rank 1 (host b"));
}

TEST_CASE("a peer whose process is stopped is a time-out") {
  Endpoints endpoints({"a", "a"});
  std::vector<PeerInfo> infos = {endpoints[0].info(), endpoints[1].info()};
  const Fd deaf = listen_unix("allring-test-" + infos[1].unix_name).value();
  infos[1].unix_name = "allring-test-" + infos[1].unix_name;
  Endpoint::Settings settings;
  settings.size = 2;
  settings.hostname = settings.host_key = "a";
  settings.secret = "x";
  std::unique_ptr<Endpoint> endpoint = Endpoint::start(settings).value();
  endpoint->set_peers(infos);
  CHECK(endpoint->connect(1, 1, deadline_after(milliseconds(50))).status().code() ==
        StatusCode::kTimedOut);

  SECTION("or an abort") {
    auto connecting =
        std::async(std::launch::async, [&] { return endpoint->connect(1, 1, soon()).status(); });
    REQUIRE(wait_ready(deaf.get(), POLLIN, soon()).ok());
    endpoint->abort(Status::peer_lost(7, "rank 7 went first"));
    const Status status = connecting.get();
    CHECK(status.message() == "rank 7 went first");
    CHECK(status.lost_rank() == 7);
  }
}

TEST_CASE("abort ends everything, once, with the first reason") {
  Endpoints endpoints({"a", "a"});
  auto waiting = std::async(std::launch::async,
                            [&] { return endpoints[0].accept(1, 1, kNoDeadline).status(); });
  const Fd event = make_event().value();
  endpoints[0].watch(9, event.get());
  Fd filed = endpoints[1].connect(0, 2, soon()).value();
  endpoints[0].abort(Status::aborted("first"));
  endpoints[0].abort(Status::aborted("second"));
  CHECK(waiting.get().message() == "first");
  CHECK(endpoints[0].connect(1, 1, soon()).status().message() == "first");
  CHECK(wait_ready(event.get(), POLLIN, soon()).ok());
  std::byte byte;
  CHECK(read_full(filed.get(), std::span(&byte, 1), soon()).code() == StatusCode::kPeerLost);
  CHECK_THAT(endpoints[1].connect(0, 1, soon()).status().message(),
             Catch::Contains("rank 0 has given up: first"));
  endpoints[0].unwatch(9);
}

TEST_CASE("a watcher hears of connections that arrived before and after") {
  Endpoints endpoints({"a", "a"});
  const Fd event = make_event().value();
  Fd early = endpoints[0].connect(1, 3, soon()).value();
  // The client is let in a moment before the connection is filed.
  (void)endpoints[1].accept(3, 0, soon()).value();
  endpoints[1].watch(3, event.get());
  CHECK(wait_ready(event.get(), POLLIN, deadline_after(milliseconds(5))).code() ==
        StatusCode::kTimedOut);
  Fd late = endpoints[0].connect(1, 3, soon()).value();
  REQUIRE(wait_ready(event.get(), POLLIN, soon()).ok());
  drain_event(event.get());
  CHECK(endpoints[1].try_accept(3, 0).value());
  endpoints[1].unwatch(3);

  Fd unheard = endpoints[0].connect(1, 3, soon()).value();
  Fd other = endpoints[0].connect(1, 4, soon()).value();
  (void)endpoints[1].accept(4, 0, soon()).value();  // filed after the other
  endpoints[1].watch(3, event.get());
  CHECK(wait_ready(event.get(), POLLIN, soon()).ok());
  endpoints[1].unwatch(3);
}

TEST_CASE("without a secret one host works and several do not") {
  const auto without = [](Endpoint::Settings* settings) { settings->secret.clear(); };
  Endpoints endpoints({"a", "a"}, without);
  CHECK(endpoints[0].connect(1, 1, soon()).ok());
  Endpoint::Settings settings;
  settings.reach = Endpoint::Reach::kLoopback;
  CHECK(Endpoint::start(settings).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("an unknown interface is refused by name") {
  Endpoint::Settings settings;
  settings.secret = "x";
  settings.hostname = "a";
  settings.reach = Endpoint::Reach::kNetwork;
  settings.interfaces = "nosuch0";
  const Status status = Endpoint::start(settings).status();
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(status.message(), Catch::Contains("rank 0 (host a)") && Catch::Contains("nosuch0"));
}

}  // namespace
}  // namespace allring
