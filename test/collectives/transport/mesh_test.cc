#include "collectives/transport/mesh.h"

#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <random>

#include "test/collectives/transport/mesh_ranks.h"

namespace allring {
namespace {

using Bytes = std::vector<std::byte>;

constexpr Medium kMedia[] = {Medium::kShm, Medium::kUnix, Medium::kTcp, Medium::kMixed};

/// The n-th message from one rank to another: length and content follow from seed and place.
Bytes message(unsigned seed, Rank from, Rank to, int n) {
  std::seed_seq sequence{seed, static_cast<unsigned>(from), static_cast<unsigned>(to),
                         static_cast<unsigned>(n)};
  std::mt19937 random(sequence);
  static constexpr std::size_t kSizes[] = {0, 1, 7, 4096, 70'000, 300'000};
  const std::size_t size = random() % 3 == 0 ? random() % 20'000 : kSizes[random() % 6];
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(random() >> 5);
  return bytes;
}

Status send(Transport& transport, Rank peer, Tag tag, const Bytes& bytes,
            Deadline deadline = soon()) {
  ALLRING_ASSIGN_OR_RETURN(const Ticket ticket, transport.post_send(peer, tag, bytes));
  return transport.wait(ticket, deadline);
}

Status receive(Transport& transport, Rank peer, Tag tag, Bytes* bytes, Deadline deadline = soon()) {
  ALLRING_ASSIGN_OR_RETURN(const Ticket ticket, transport.post_recv(peer, tag, *bytes));
  return transport.wait(ticket, deadline);
}

/// One rank's part of a run in which everybody sends `count` messages to everybody, posts them in
/// an order of its own and waits in another.
Status exchange(Transport& transport, unsigned seed, int count) {
  std::mt19937 random(seed + static_cast<unsigned>(transport.rank()));
  struct Posted {
    Ticket ticket;
    Bytes bytes;
    Bytes expected;  // of a receive
  };
  std::vector<std::pair<Rank, bool>> order;
  for (Rank peer = 0; peer < transport.size(); ++peer) {
    if (peer == transport.rank()) continue;
    for (int n = 0; n < count; ++n) {
      order.emplace_back(peer, true);
      order.emplace_back(peer, false);
    }
  }
  std::shuffle(order.begin(), order.end(), random);
  std::vector<int> sent(transport.size());
  std::vector<int> received(transport.size());
  std::vector<std::unique_ptr<Posted>> posted;
  for (const auto& [peer, sending] : order) {
    auto entry = std::make_unique<Posted>();
    const int n = sending ? sent[peer]++ : received[peer]++;
    const Tag tag = static_cast<Tag>(n) << 40 | 5;
    if (sending) {
      entry->bytes = message(seed, transport.rank(), peer, n);
      ALLRING_ASSIGN_OR_RETURN(entry->ticket, transport.post_send(peer, tag, entry->bytes));
    } else {
      entry->expected = message(seed, peer, transport.rank(), n);
      entry->bytes.resize(entry->expected.size());
      ALLRING_ASSIGN_OR_RETURN(entry->ticket, transport.post_recv(peer, tag, entry->bytes));
    }
    posted.push_back(std::move(entry));
  }
  std::shuffle(posted.begin(), posted.end(), random);
  for (const auto& entry : posted) {
    ALLRING_RETURN_IF_ERROR(transport.wait(entry->ticket, soon()));
    if (!entry->expected.empty() && entry->bytes != entry->expected) {
      return Status::internal("wrong bytes");
    }
  }
  return {};
}

TEST_CASE("everybody sends to everybody, in any order") {
  const Medium medium = GENERATE(from_range(std::begin(kMedia), std::end(kMedia)));
  const auto shape = GENERATE(std::pair(2, WaitPolicy{200, 20}), std::pair(3, WaitPolicy{0, 0}),
                              std::pair(8, WaitPolicy{0, 50}));
  const int ranks = shape.first;
  const unsigned seed = std::random_device()();
  INFO(medium_name(medium) << ", " << ranks << " ranks, seed " << seed);
  MeshRanks mesh(medium, ranks, shape.second);
  for (int round = 0; round < 2; ++round) {
    const auto results = on_ranks(ranks, [&](Rank rank) {
      return exchange(mesh[rank], seed + static_cast<unsigned>(round), 16 / ranks);
    });
    for (const Status& status : results) CHECK(status.to_string() == "ok");
  }
}

TEST_CASE("large messages both ways at once") {
  const Medium medium = GENERATE(from_range(std::begin(kMedia), std::end(kMedia)));
  INFO(medium_name(medium));
  MeshRanks mesh(medium, 2);
  constexpr std::size_t kBytes = (16 << 20) + 3;
  std::vector<Bytes> sent = {Bytes(kBytes, std::byte{1}), Bytes(kBytes, std::byte{2})};
  std::vector<Bytes> received(2, Bytes(kBytes));
  const auto results = on_ranks(2, [&](Rank rank) -> Status {
    ALLRING_ASSIGN_OR_RETURN(const Ticket out, mesh[rank].post_send(1 - rank, 1, sent[rank]));
    ALLRING_ASSIGN_OR_RETURN(const Ticket in, mesh[rank].post_recv(1 - rank, 1, received[rank]));
    ALLRING_RETURN_IF_ERROR(mesh[rank].wait(out, soon()));
    return mesh[rank].wait(in, soon());
  });
  for (const Status& status : results) CHECK(status.to_string() == "ok");
  CHECK(received[0] == sent[1]);
  CHECK(received[1] == sent[0]);
}

TEST_CASE("a group of some ranks, in an order of its own") {
  Endpoints endpoints({"a", "b", "a", "c"});
  const auto results = on_ranks(4, [&](Rank rank) -> Status {
    if (rank == 1) {
      MeshTransport::Settings settings;
      settings.members = {3, 2, 0};
      return MeshTransport::create(endpoints[rank], settings).status();
    }
    MeshTransport::Settings settings;
    settings.channel = 64 + 1;
    settings.members = {3, 2, 0};
    ALLRING_ASSIGN_OR_RETURN(const auto mesh, MeshTransport::create(endpoints[rank], settings));
    return exchange(*mesh, 7, 3);
  });
  for (const Rank rank : {0, 2, 3}) CHECK(results[rank].to_string() == "ok");
  CHECK(results[1].code() == StatusCode::kInvalidArgument);
}

TEST_CASE("several lanes do not mix") {
  Endpoints endpoints({"a", "b", "a"});
  constexpr int kLanes = 3;
  const auto results = on_ranks(3 * kLanes, [&](int index) -> Status {
    MeshTransport::Settings settings;
    settings.channel = static_cast<std::uint32_t>(1 + index % kLanes);
    ALLRING_ASSIGN_OR_RETURN(const auto mesh,
                             MeshTransport::create(endpoints[index / kLanes], settings));
    return exchange(*mesh, static_cast<unsigned>(index % kLanes), 5);
  });
  for (const Status& status : results) CHECK(status.to_string() == "ok");
}

TEST_CASE("a channel can be used again once all have left it") {
  Endpoints endpoints({"a", "a", "b"});
  for (unsigned round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<MeshTransport>> meshes;
    for (Rank rank = 0; rank < 3; ++rank) {
      meshes.push_back(MeshTransport::create(endpoints[rank], {}).value());
    }
    const auto results = on_ranks(3, [&](Rank rank) { return exchange(*meshes[rank], round, 2); });
    for (const Status& status : results) CHECK(status.to_string() == "ok");
    // Never taken by the receiver.
    CHECK(meshes[0]->post_send(1, 99, {}).ok());
  }
}

TEST_CASE("a message that was not expected is told on the receiver, with both ranks") {
  const Medium medium = GENERATE(from_range(std::begin(kMedia), std::end(kMedia)));
  INFO(medium_name(medium));
  MeshRanks mesh(medium, 2);
  const Bytes sent(1000);
  CHECK(send(mesh[0], 1, 5, sent).ok());
  Bytes bytes(1000);
  const Status status = receive(mesh[1], 0, 6, &bytes);
  CHECK(status.code() == StatusCode::kInternal);
  CHECK_THAT(status.message(),
             Catch::Contains("from rank 0 (host ") && Catch::Contains("to rank 1 (host ") &&
                 Catch::Contains("tag 6 with 1000") && Catch::Contains("tag 5 with 1000"));
  // It stays so.
  CHECK(mesh[1].post_recv(0, 6, bytes).status().message() == status.message());
}

TEST_CASE("a peer that ends in the middle of a message is lost, by name") {
  const Medium medium = GENERATE(from_range(std::begin(kMedia), std::end(kMedia)));
  const WaitPolicy policy = GENERATE(WaitPolicy{0, 0}, WaitPolicy{1 << 30, 0});
  INFO(medium_name(medium) << ", spins " << policy.spins);
  MeshRanks mesh(medium, 2, policy);

  const Bytes sent(16 << 20);
  Bytes bytes(16 << 20);
  SECTION("to whom receives") {
    CHECK(send(mesh[0], 1, 4, {}).ok());
    Bytes first;
    CHECK(receive(mesh[1], 0, 4, &first).ok());
    // Goes as far as the link holds.
    CHECK(send(mesh[0], 1, 5, sent, deadline_after(milliseconds(0))).code() ==
          StatusCode::kTimedOut);
    auto receiving = std::async(std::launch::async, [&] { return receive(mesh[1], 0, 5, &bytes); });
    mesh.end(0);
    const Status status = receiving.get();
    CHECK(status.code() == StatusCode::kPeerLost);
    CHECK(status.lost_rank() == 0);
    CHECK_THAT(status.message(),
               Catch::StartsWith("rank 0 (host ") && Catch::Contains("ended or was killed"));
  }
  SECTION("to whom sends") {
    auto sending = std::async(std::launch::async, [&]() -> Status {
      ALLRING_RETURN_IF_ERROR(send(mesh[0], 1, 4, {}));
      return send(mesh[0], 1, 5, sent);
    });
    Bytes first;
    CHECK(receive(mesh[1], 0, 4, &first).ok());
    mesh.end(1);
    const Status status = sending.get();
    CHECK(status.code() == StatusCode::kPeerLost);
    CHECK(status.lost_rank() == 1);
  }
}

TEST_CASE("what was sent before the end still arrives") {
  const Medium medium = GENERATE(from_range(std::begin(kMedia), std::end(kMedia)));
  INFO(medium_name(medium));
  MeshRanks mesh(medium, 2);
  const Bytes sent(4000, std::byte{9});
  for (Tag tag = 0; tag < 3; ++tag) CHECK(send(mesh[0], 1, tag, sent).ok());
  Bytes bytes(4000);
  CHECK(receive(mesh[1], 0, 0, &bytes).ok());
  mesh.end(0);
  CHECK(receive(mesh[1], 0, 1, &bytes).ok());
  CHECK(receive(mesh[1], 0, 2, &bytes).ok());
  CHECK(bytes == sent);
  CHECK(receive(mesh[1], 0, 3, &bytes).code() == StatusCode::kPeerLost);
}

TEST_CASE("abort wakes whoever waits, with its reason") {
  const Medium medium = GENERATE(from_range(std::begin(kMedia), std::end(kMedia)));
  const WaitPolicy policy =
      GENERATE(WaitPolicy{0, 0}, WaitPolicy{0, 1 << 30}, WaitPolicy{1 << 30, 0});
  INFO(medium_name(medium) << ", spins " << policy.spins << ", yields " << policy.yields);
  MeshRanks mesh(medium, 2, policy);
  const bool connected = GENERATE(true, false);
  Bytes first(1);
  if (connected) {
    CHECK(send(mesh[0], 1, 1, first).ok());
    CHECK(receive(mesh[1], 0, 1, &first).ok());
  }
  Bytes bytes(10);
  auto waiting =
      std::async(std::launch::async, [&] { return receive(mesh[1], 0, 2, &bytes, kNoDeadline); });
  mesh[1].abort(Status::peer_lost(4, "rank 4 went away"));
  mesh[1].abort(Status::aborted("too late"));
  const Status status = waiting.get();
  CHECK(status.message() == "rank 4 went away");
  CHECK(status.lost_rank() == 4);
  CHECK(mesh[1].post_send(0, 3, bytes).status().message() == "rank 4 went away");
}

TEST_CASE("after an abort nothing succeeds, though it could") {
  MeshRanks mesh(GENERATE(Medium::kShm, Medium::kTcp), 2);
  Bytes bytes(10);
  CHECK(send(mesh[0], 1, 1, bytes).ok());
  const Ticket ticket = mesh[1].post_recv(0, 1, bytes).value();
  mesh[1].abort(Status::aborted("enough"));
  CHECK(mesh[1].wait(ticket, soon()).message() == "enough");
}

TEST_CASE("a deadline names whom was waited for and how far it got") {
  const Medium medium = GENERATE(from_range(std::begin(kMedia), std::end(kMedia)));
  INFO(medium_name(medium));
  MeshRanks mesh(medium, 2);
  Bytes bytes(10);
  SECTION("before the peer has connected") {
    const Status status = receive(mesh[1], 0, 2, &bytes, deadline_after(milliseconds(5)));
    CHECK(status.code() == StatusCode::kTimedOut);
    CHECK_THAT(status.message(), Catch::Contains("rank 0 (host ") &&
                                     Catch::Contains("has not connected") &&
                                     Catch::Contains("tag 2 and 10 bytes"));
  }
  SECTION("afterwards") {
    Bytes first;
    auto sending = std::async(std::launch::async, [&] { return send(mesh[1], 0, 1, {}); });
    CHECK(receive(mesh[0], 1, 1, &first).ok());
    CHECK(sending.get().ok());
    // More than a link holds, to one who does not receive.
    const Bytes sent(16 << 20);
    const Status status = send(mesh[1], 0, 2, sent, deadline_after(milliseconds(5)));
    CHECK(status.code() == StatusCode::kTimedOut);
    CHECK_THAT(status.message(), Catch::Contains("in which the message with tag 2"));
  }
}

TEST_CASE("a peer whose endpoint is gone cannot be sent to") {
  MeshRanks mesh(GENERATE(Medium::kShm, Medium::kTcp), 2);
  mesh.end(1);
  const Status status = send(mesh[0], 1, 1, {});
  CHECK(status.code() == StatusCode::kPeerLost);
  CHECK(status.lost_rank() == 1);
}

TEST_CASE("abort ends a connection that is being made") {
  Endpoints endpoints({"a", "a"});
  std::vector<PeerInfo> infos = {endpoints[0].info(), endpoints[1].info()};
  infos[1].unix_name += "-deaf";
  const Fd deaf = listen_unix(infos[1].unix_name).value();
  Endpoint::Settings settings;
  settings.size = 2;
  settings.hostname = settings.host_key = "a";
  settings.secret = "x";
  auto endpoint = Endpoint::start(settings).value();
  endpoint->set_peers(infos);
  auto mesh = MeshTransport::create(*endpoint, {}).value();
  auto sending = std::async(std::launch::async, [&] { return send(*mesh, 1, 1, {}); });
  REQUIRE(wait_ready(deaf.get(), POLLIN, soon()).ok());
  mesh->abort(Status::aborted("enough"));
  CHECK(sending.get().message() == "enough");
}

TEST_CASE("a peer that lets nobody in keeps no other waiting") {
  Endpoints endpoints({"a", "a", "a"});
  std::vector<PeerInfo> infos;
  for (Rank rank = 0; rank < 3; ++rank) infos.push_back(endpoints[rank].info());
  infos[1].unix_name += "-deaf";
  const Fd deaf = listen_unix(infos[1].unix_name).value();
  Endpoint::Settings settings;
  settings.size = 3;
  settings.hostname = settings.host_key = "a";
  settings.secret = "a secret of the test's own";
  auto endpoint = Endpoint::start(settings).value();
  infos[0] = endpoint->info();
  endpoint->set_peers(infos);
  auto mesh = MeshTransport::create(*endpoint, {}).value();
  auto receiver = MeshTransport::create(endpoints[2], {}).value();
  const Bytes sent(1000, std::byte{7});
  const Ticket unheard = mesh->post_send(1, 1, sent).value();
  auto sending = std::async(std::launch::async, [&] { return send(*mesh, 2, 1, sent); });
  Bytes received(1000);
  CHECK(receive(*receiver, 0, 1, &received).to_string() == "ok");
  CHECK(received == sent);
  CHECK(sending.get().to_string() == "ok");
  const Status status = mesh->wait(unheard, deadline_after(milliseconds(5)));
  CHECK(status.code() == StatusCode::kTimedOut);
  CHECK_THAT(status.message(), Catch::Contains("has not let it in"));
}

/// Passes bytes on between a client and the server at `target`, and flips one bit on the way.
class FlippingProxy {
 public:
  FlippingProxy(TcpAddress target, std::size_t flip_at)
      : listener_(listen_tcp({"127.0.0.1", 0}).value()), target_(std::move(target)) {
    address_ = {"127.0.0.1", local_port(listener_.get()).value()};
    passing_ = std::async(std::launch::async, [this, flip_at] { return pass(flip_at); });
  }
  ~FlippingProxy() {
    signal_event(stop_.get());
    passing_.wait();
  }
  const TcpAddress& address() const { return address_; }

 private:
  Status pass(std::size_t flip_at) {
    ALLRING_RETURN_IF_ERROR(wait_ready(listener_.get(), POLLIN, soon(), stop_.get()));
    const Fd client = accept_connection(listener_.get()).value();
    ALLRING_ASSIGN_OR_RETURN(const Fd server, connect_tcp(target_, soon()));
    std::size_t passed = 0;
    while (true) {
      pollfd fds[3] = {
          {client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      ALLRING_RETURN_IF_ERROR(wait_any(fds, soon()));
      if (fds[2].revents != 0) return {};
      for (const auto& [from, to] :
           {std::pair{client.get(), server.get()}, std::pair{server.get(), client.get()}}) {
        std::byte buffer[65536];
        const ssize_t got = recv(from, buffer, sizeof(buffer), MSG_DONTWAIT);
        if (got == 0) return {};
        if (got < 0) continue;
        const auto count = static_cast<std::size_t>(got);
        if (from == client.get()) {
          if (flip_at >= passed && flip_at < passed + count) {
            buffer[flip_at - passed] ^= std::byte{0x10};
          }
          passed += count;
        }
        ALLRING_RETURN_IF_ERROR(write_full(to, std::span(buffer, count), soon(), stop_.get()));
      }
    }
  }

  Fd listener_;
  Fd stop_ = make_event().value();
  TcpAddress target_;
  TcpAddress address_;
  std::future<Status> passing_;
};

TEST_CASE("a bit that flips on the wire is an error that names the link") {
  // The client's side of the handshake is 92 bytes long, a header 20.
  const std::size_t flip_at =
      GENERATE(92 + 3, 92 + 12, 92 + 18, 92 + 20, 92 + 20 + 99'999, 92 + 20 + 100'000 + 2);
  INFO("byte " << flip_at);
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<PeerInfo> infos;
  for (Rank rank = 0; rank < 2; ++rank) {
    Endpoint::Settings settings;
    settings.rank = rank;
    settings.size = 2;
    settings.hostname = settings.host_key = "host" + std::to_string(rank);
    settings.secret = "x";
    settings.reach = Endpoint::Reach::kLoopback;
    endpoints.push_back(Endpoint::start(settings).value());
    infos.push_back(endpoints.back()->info());
  }
  const FlippingProxy proxy(infos[1].addresses.front().tcp, flip_at);
  endpoints[1]->set_peers(infos);
  infos[1].addresses = {{proxy.address(), 8}};
  endpoints[0]->set_peers(infos);
  auto sender = MeshTransport::create(*endpoints[0], {}).value();
  auto receiver = MeshTransport::create(*endpoints[1], {}).value();
  const Bytes sent(100'000, std::byte{3});
  auto sending = std::async(std::launch::async, [&] { return send(*sender, 1, 1, sent); });
  Bytes received(100'000);
  const Status status = receive(*receiver, 0, 1, &received);
  CHECK(sending.get().to_string() == "ok");
  CHECK(status.code() == StatusCode::kInternal);
  CHECK_THAT(status.message(), Catch::Contains("from rank 0 (host host0") &&
                                   Catch::Contains("to rank 1 (host host1") &&
                                   Catch::Contains("CRC32C"));
}

}  // namespace
}  // namespace allring
