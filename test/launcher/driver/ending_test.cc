#include "launcher/driver/ending.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <vector>

namespace allring {
namespace {

/// Signals sent until the loop is stopped, `until` after the start or by `stuck`.
std::vector<int> signals(nanoseconds grace, nanoseconds until, void (*drive)(Ending&)) {
  EventLoop loop;
  std::vector<int> sent;
  Ending ending(loop, grace, {[&](int signal) { sent.push_back(signal); }, [&] { loop.stop(); }});
  loop.after(until, [&] { loop.stop(); });
  loop.post([&] { drive(ending); });
  loop.run();
  return sent;
}

using Signals = std::vector<int>;

TEST_CASE("ranks are asked once and killed after the grace") {
  CHECK(signals(milliseconds(1), milliseconds(200), [](Ending& ending) {
          ending.ask(SIGINT);
          ending.ask(SIGTERM);
          ending.after_failure();
        }) == Signals{SIGINT, SIGKILL});
}

TEST_CASE("a grace is waited for") {
  CHECK(signals(seconds(1000), milliseconds(50), [](Ending& ending) { ending.ask(SIGTERM); }) ==
        Signals{SIGTERM});
}

TEST_CASE("killing skips what is left of the steps, and comes once") {
  CHECK(signals(seconds(1000), milliseconds(50), [](Ending& ending) {
          ending.ask(SIGTERM);
          ending.kill();
          ending.kill();
          CHECK(ending.killed());
        }) == Signals{SIGTERM, SIGKILL});
  CHECK(signals(seconds(1000), milliseconds(50), [](Ending& ending) {
          ending.kill();
          ending.ask(SIGTERM);
        }) == Signals{SIGKILL});
}

TEST_CASE("after a failure the others have some seconds") {
  CHECK(signals(milliseconds(1), milliseconds(300),
                [](Ending& ending) { ending.after_failure(); }) == Signals{});
  CHECK(signals(milliseconds(1), milliseconds(3500), [](Ending& ending) {
          ending.after_failure();
          ending.after_failure();
        }) == Signals{SIGTERM, SIGKILL});
}

TEST_CASE("nothing comes once no rank is left") {
  CHECK(signals(milliseconds(1), milliseconds(50), [](Ending& ending) {
          ending.ask(SIGTERM);
          ending.stop();
          ending.kill();
        }) == Signals{SIGTERM});
}

}  // namespace
}  // namespace allring
