// A StoreServer and its clients, well-behaved and not.
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "collectives/transport/handshake.h"
#include "collectives/transport/socket.h"
#include "runtime/rendezvous/key_value.h"
#include "runtime/rendezvous/store_address.h"
#include "runtime/rendezvous/store_client.h"
#include "runtime/rendezvous/store_server.h"

namespace allring {
namespace {

const std::string kSecret(32, 's');

Deadline soon() { return deadline_after(seconds(30)); }

std::string fresh_unix_address() {
  static std::atomic<int> number{0};
  return "unix:@allring-store-test-" + std::to_string(getpid()) + "-" + std::to_string(number++);
}

std::unique_ptr<StoreServer> serve(const std::string& address, KeyValueMap& map,
                                   const std::string& secret = kSecret) {
  auto server = StoreServer::listen(address, secret, map);
  INFO(server.status().to_string());
  REQUIRE(server.ok());
  return std::move(server).value();
}

Result<std::unique_ptr<StoreClient>> connect(const std::string& address, Rank rank = 0,
                                             const std::string& secret = kSecret,
                                             nanoseconds within = seconds(30)) {
  StoreClient::Settings settings;
  settings.candidates = {address};
  settings.secret = secret;
  settings.rank = rank;
  return StoreClient::connect(settings, deadline_after(within));
}

// A connection that has not proven anything.
Fd stranger(const std::string& address) {
  auto parsed = StoreAddress::parse(address);
  REQUIRE(parsed.ok());
  auto fd = parsed->is_unix ? connect_unix(parsed->name, soon())
                            : connect_tcp({"127.0.0.1", parsed->port}, soon());
  REQUIRE(fd.ok());
  return std::move(fd).value();
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST_CASE("a client puts, waits and removes, over unix and TCP") {
  const std::string address = GENERATE(fresh_unix_address(), std::string("tcp:127.0.0.1:0"));
  MemoryKeyValueMap map;
  auto server = serve(address, map);
  auto client = connect(server->address());
  REQUIRE(client.ok());
  Store& store = **client;
  CHECK(store.put("k", std::string("a\0b", 3)).ok());
  auto value = store.wait("k", soon());
  REQUIRE(value.ok());
  CHECK(*value == std::string("a\0b", 3));
  CHECK(store.put("k", "").ok());
  CHECK(*store.wait("k", soon()) == "");
  CHECK(store.remove("k").ok());
  const Status late = store.wait("k", deadline_after(milliseconds(5))).status();
  CHECK(late.code() == StatusCode::kTimedOut);
  CHECK(late.message().find("\"k\"") != std::string::npos);
  const std::string large(5 << 20, 'x');
  CHECK(store.put("large", large).ok());
  CHECK(*store.wait("large", soon()) == large);
  CHECK(store.put(std::string(5000, 'k'), "").code() == StatusCode::kInvalidArgument);
}

TEST_CASE("the map's other users and the clients see each other's keys") {
  MemoryKeyValueMap map;
  auto first = serve(fresh_unix_address(), map);
  auto second = serve("tcp:127.0.0.1:0", map);
  auto one = connect(first->address());
  auto two = connect(second->address());
  REQUIRE((one.ok() && two.ok()));
  CHECK((*one)->put("from one", "1").ok());
  CHECK(*(*two)->wait("from one", soon()) == "1");
  map.put("direct", "2");
  CHECK(*(*one)->wait("direct", soon()) == "2");
}

TEST_CASE("64 clients exchange all with all, several threads on each connection") {
  constexpr int kRanks = 64;
  MemoryKeyValueMap map;
  auto server = serve(fresh_unix_address(), map);
  std::vector<std::string> failures(kRanks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      auto client = connect(server->address(), rank);
      if (!client.ok()) {
        failures[rank] = client.status().to_string();
        return;
      }
      std::string waited;
      std::thread waiter([&] {
        auto last = (*client)->wait("peer/" + std::to_string(kRanks - 1 - rank), soon());
        waited = last.ok() ? *last : last.status().to_string();
      });
      const Status put = (*client)->put("peer/" + std::to_string(rank), std::to_string(rank));
      std::vector<std::string> keys;
      for (int peer = 0; peer < kRanks; ++peer) keys.push_back("peer/" + std::to_string(peer));
      auto all = (*client)->wait_each(keys, soon());
      waiter.join();
      if (!put.ok()) failures[rank] = put.to_string();
      if (!all.ok()) failures[rank] = all.status().to_string();
      for (int peer = 0; all.ok() && peer < kRanks; ++peer)
        if ((*all)[peer] != std::to_string(peer)) failures[rank] = "wrong value";
      if (waited != std::to_string(kRanks - 1 - rank)) failures[rank] = waited;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}

TEST_CASE("wait_each tells which keys did not come") {
  MemoryKeyValueMap map;
  auto server = serve(fresh_unix_address(), map);
  auto client = connect(server->address());
  REQUIRE(client.ok());
  map.put("b", "2");
  auto values = (*client)->wait_each({"a", "b", "c"}, deadline_after(milliseconds(20)));
  REQUIRE(values.ok());
  CHECK((*values)[0] == std::nullopt);
  CHECK((*values)[1] == "2");
  CHECK((*values)[2] == std::nullopt);
}

TEST_CASE("a server that ends fails pending waits") {
  MemoryKeyValueMap map;
  auto server = serve(fresh_unix_address(), map);
  auto client = connect(server->address());
  REQUIRE(client.ok());
  Status seen;
  std::thread waiter([&] { seen = (*client)->wait("never", soon()).status(); });
  server.reset();
  waiter.join();
  CHECK(seen.code() == StatusCode::kPeerLost);
  CHECK((*client)->put("k", "v").code() == StatusCode::kPeerLost);
}

TEST_CASE("a client waits for a server that starts later, and passes over other services") {
  auto other = listen_tcp({"127.0.0.1", 0});  // accepts in its backlog, and never says a word
  REQUIRE(other.ok());
  auto port = local_port(other->get());
  REQUIRE(port.ok());
  MemoryKeyValueMap map;
  MemoryKeyValueMap wrong_map;
  auto wrong = serve("tcp:127.0.0.1:0", wrong_map, std::string(32, 'w'));
  StoreClient::Settings settings;
  const std::string late = fresh_unix_address();
  settings.candidates = {wrong->address(), "tcp:no-such-host.invalid:1", late};
  settings.secret = kSecret;
  Result<std::unique_ptr<StoreClient>> client = Status::internal("not run");
  std::thread connecting([&] { client = StoreClient::connect(settings, soon()); });
  auto server = serve(late, map);
  connecting.join();
  INFO(client.status().to_string());
  REQUIRE(client.ok());
  CHECK((*client)->address() == late);
}

TEST_CASE("at the deadline each candidate and its outcome is named") {
  MemoryKeyValueMap map;
  auto wrong = serve("tcp:127.0.0.1:0", map, std::string(32, 'w'));
  const std::string nobody = fresh_unix_address();
  StoreClient::Settings settings;
  settings.candidates = {wrong->address(), nobody};
  settings.secret = kSecret;
  const Status status = StoreClient::connect(settings, deadline_after(milliseconds(100))).status();
  CHECK(status.code() == StatusCode::kTimedOut);
  CHECK(status.message().find(wrong->address()) != std::string::npos);
  CHECK(status.message().find("secret") != std::string::npos);
  CHECK(status.message().find(nobody) != std::string::npos);
}

TEST_CASE("without a secret only unix sockets are served") {
  MemoryKeyValueMap map;
  CHECK(StoreServer::listen("tcp:127.0.0.1:0", "", map).status().code() ==
        StatusCode::kInvalidArgument);
  auto server = serve(fresh_unix_address(), map, "");
  CHECK(connect(server->address(), 0, "").ok());
  CHECK(connect(server->address(), 0, kSecret, milliseconds(50)).status().code() ==
        StatusCode::kTimedOut);
}

TEST_CASE("an address in use, a foreign one and nonsense are refused") {
  MemoryKeyValueMap map;
  const std::string address = fresh_unix_address();
  auto server = serve(address, map);
  CHECK(StoreServer::listen(address, kSecret, map).status().code() == StatusCode::kInvalidArgument);
  CHECK(!StoreServer::listen("tcp:192.0.2.1:0", kSecret, map).ok());
  CHECK(!StoreServer::listen("http://x", kSecret, map).ok());
}

TEST_CASE("a port that was just served can be served again") {
  MemoryKeyValueMap map;
  auto server = serve("tcp:127.0.0.1:0", map);
  const std::string address = server->address();
  for (int i = 0; i < 5; ++i) {
    auto client = connect(address);
    REQUIRE(client.ok());
    CHECK((*client)->put("k", "v").ok());
    server.reset();  // the server closes first: its end lingers in TIME_WAIT
    server = serve(address, map);
  }
}

TEST_CASE("strangers, garbage and slow clients hurt nobody") {
  MemoryKeyValueMap map;
  auto server = serve("tcp:127.0.0.1:0", map);
  const std::string address = server->address();

  std::vector<Fd> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(stranger(address));
  Fd garbage = stranger(address);
  const std::string noise(100000, '\xff');
  // The server may close while this is being written.
  (void)write_full(garbage.get(), std::as_bytes(std::span(noise)), soon());

  // Waits at most as long as the crowd's first second.
  auto good = connect(address);
  REQUIRE(good.ok());
  CHECK((*good)->put("k", "v").ok());

  SECTION("proven, but speaks nonsense") {
    for (const std::string& words :
         {std::string("\x00\x00\x00\x00", 4), std::string("\xff\xff\xff\xff", 4),
          std::string("\x05\x00\x00\x00\x63\x01\x00\x00\x00", 9),
          std::string("\x09\x00\x00\x00\x01\x01\x00\x00\x00\xff\xff\x00\x00", 13)}) {
      Fd fd = stranger(address);
      Hello hello;
      REQUIRE(client_handshake(fd.get(), kSecret, hello, soon()).ok());
      REQUIRE(write_full(fd.get(), std::as_bytes(std::span(words)), soon()).ok());
      std::byte answer[1];
      CHECK(read_full(fd.get(), answer, soon()).code() == StatusCode::kPeerLost);
    }
  }
  SECTION("proven, but never reads its answers") {
    map.put("large", std::string(8 << 20, 'x'));
    Fd fd = stranger(address);
    Hello hello;
    REQUIRE(client_handshake(fd.get(), kSecret, hello, soon()).ok());
    std::string waits;
    for (std::uint32_t id = 1; id <= 1000; ++id)
      waits += StoreFrame{StoreFrameType::kWait, id, "large", {}}.encode();
    REQUIRE(write_full(fd.get(), std::as_bytes(std::span(waits)), soon()).ok());
    CHECK(*(*good)->wait("large", soon()) == std::string(8 << 20, 'x'));
  }
  CHECK(*(*good)->wait("k", soon()) == "v");
}

TEST_CASE("nothing is left behind") {
  MemoryKeyValueMap map;
  const auto before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    auto server = serve(fresh_unix_address(), map);
    auto client = connect(server->address());
    REQUIRE(client.ok());
    CHECK((*client)->wait("never", deadline_after(nanoseconds(0))).status().code() ==
          StatusCode::kTimedOut);
  }
  // The map still holds the watches, and with each the descriptor that it would signal.
  map.put("never", "");
  CHECK(open_descriptors() == before);
}

}  // namespace
}  // namespace allring
