// A connection that is made beside the thread that wants it.
#include "collectives/transport/connecting.h"

#include <poll.h>

#include <catch2/catch.hpp>

#include "test/collectives/transport/endpoints.h"

namespace allring {
namespace {

TEST_CASE("a connection made by a thread is the one that the peer accepts") {
  Endpoints endpoints({"a", "b"});
  const Fd cancel = make_event().value();
  const Fd done = make_event().value();
  Connecting connecting(endpoints[0], 1, 5, soon(), cancel.get(), done.get());
  REQUIRE(wait_ready(done.get(), POLLIN, soon()).ok());
  REQUIRE(connecting.done());
  const Fd mine = connecting.take().value();
  const Fd theirs = endpoints[1].accept(5, 0, soon()).value();
  const std::byte sent{7};
  CHECK(write_full(mine.get(), {&sent, 1}, soon()).ok());
  std::byte received{0};
  CHECK(read_full(theirs.get(), {&received, 1}, soon()).ok());
  CHECK(received == sent);
}

TEST_CASE("a connection to nobody says so, and one that is given up ends at once") {
  Endpoints endpoints({"a", "a"});
  const Fd cancel = make_event().value();
  const Fd done = make_event().value();
  SECTION("nobody") {
    endpoints.end(1);
    Connecting connecting(endpoints[0], 1, 5, soon(), cancel.get(), done.get());
    REQUIRE(wait_ready(done.get(), POLLIN, soon()).ok());
    CHECK(connecting.take().status().code() == StatusCode::kPeerLost);
  }
  SECTION("given up") {
    Endpoint::Settings settings;
    settings.size = 2;
    settings.hostname = settings.host_key = "a";
    settings.secret = "x";
    auto endpoint = Endpoint::start(settings).value();
    std::vector<PeerInfo> infos = {endpoint->info(), endpoints[1].info()};
    infos[1].unix_name += "-deaf";
    const Fd deaf = listen_unix(infos[1].unix_name).value();
    endpoint->set_peers(infos);
    Connecting connecting(*endpoint, 1, 5, kNoDeadline, cancel.get(), done.get());
    CHECK_FALSE(connecting.done());
    signal_event(cancel.get());
    REQUIRE(wait_ready(done.get(), POLLIN, soon()).ok());
    CHECK(connecting.take().status().code() == StatusCode::kAborted);
  }
}

}  // namespace
}  // namespace allring
