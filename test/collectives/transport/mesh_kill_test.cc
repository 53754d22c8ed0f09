// Ranks that are processes, one of which is killed.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "collectives/transport/mesh.h"

namespace allring {
namespace {

Deadline soon() { return deadline_after(seconds(20)); }

enum class Medium { kShm, kUnix, kTcp };

std::unique_ptr<Endpoint> start_endpoint(Rank rank, Medium medium) {
  Endpoint::Settings settings;
  settings.rank = rank;
  settings.size = 2;
  settings.hostname = medium == Medium::kTcp ? "host" + std::to_string(rank) : "a";
  settings.host_key = settings.hostname;
  settings.secret = "a secret of the test's own";
  if (medium == Medium::kTcp) settings.reach = Endpoint::Reach::kLoopback;
  return Endpoint::start(settings).value();
}

/// Tells the other process about ours, and hears about its.
void introduce(Endpoint& endpoint, int socket) {
  std::string mine;
  endpoint.info().append_to(&mine);
  mine.resize(1000);
  ALLRING_CHECK(write_full(socket, std::as_bytes(std::span(mine)), soon()).ok(), "test");
  std::string theirs(1000, '\0');
  ALLRING_CHECK(read_full(socket, std::as_writable_bytes(std::span(theirs)), soon()).ok(), "test");
  std::string_view left = theirs;
  std::vector<PeerInfo> infos = {endpoint.info(), PeerInfo::parse(&left).value()};
  if (endpoint.rank() == 1) std::swap(infos[0], infos[1]);
  endpoint.set_peers(infos);
}

MeshTransport::Settings settings_for(Medium medium) {
  MeshTransport::Settings settings;
  settings.shared_memory = medium == Medium::kShm;
  settings.wait = {.spins = 100, .yields = 10};
  return settings;
}

/// Both ranks: one exchange after the other, of 1 MiB, until it fails.
Status exchange_for_ever(Transport& transport, int first_done) {
  std::vector<std::byte> out(1 << 20);
  std::vector<std::byte> in(1 << 20);
  const Rank peer = 1 - transport.rank();
  for (Tag tag = 0;; ++tag) {
    ALLRING_ASSIGN_OR_RETURN(const Ticket sent, transport.post_send(peer, tag, out));
    ALLRING_ASSIGN_OR_RETURN(const Ticket received, transport.post_recv(peer, tag, in));
    ALLRING_RETURN_IF_ERROR(transport.wait(sent, soon()));
    ALLRING_RETURN_IF_ERROR(transport.wait(received, soon()));
    if (tag == 0) signal_event(first_done);
  }
}

std::string text_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_CASE("a rank that is killed in the middle of messages is lost at once, and leaves nothing") {
  const Medium medium = GENERATE(Medium::kShm, Medium::kUnix, Medium::kTcp);
  INFO("medium " << static_cast<int>(medium));
  auto [mine, theirs] = socket_pair().value();
  const Fd first_done = make_event().value();
  const pid_t child = fork();  // before there are threads
  if (child == 0) {
    mine.reset();
    auto endpoint = start_endpoint(1, medium);
    introduce(*endpoint, theirs.get());
    auto mesh = MeshTransport::create(*endpoint, settings_for(medium)).value();
    (void)exchange_for_ever(*mesh, first_done.get());
    _exit(1);
  }
  theirs.reset();
  auto endpoint = start_endpoint(0, medium);
  introduce(*endpoint, mine.get());
  auto mesh = MeshTransport::create(*endpoint, settings_for(medium)).value();
  // The killer does not wait for the exchange to be at any particular point.
  const pid_t killer = fork();
  if (killer == 0) {
    (void)wait_ready(first_done.get(), POLLIN, soon());
    kill(child, SIGKILL);
    _exit(0);
  }
  const Status status = exchange_for_ever(*mesh, first_done.get());
  const TimePoint noticed = Clock::real().now();
  int how = 0;
  waitpid(child, &how, 0);
  waitpid(killer, nullptr, 0);
  CHECK(Clock::real().now() - noticed < seconds(2));
  CHECK(WIFSIGNALED(how));
  CHECK(status.code() == StatusCode::kPeerLost);
  CHECK(status.lost_rank() == 1);
  CHECK_THAT(status.message(),
             Catch::Contains("rank 1 (host ") && Catch::Contains("pid " + std::to_string(child)));
  CHECK(text_of("/proc/net/unix").find(endpoint->peer(1).unix_name) == std::string::npos);
}

}  // namespace
}  // namespace allring
