#include "launcher/event_loop.h"

#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>

namespace allring {
namespace {

TEST_CASE("posted work runs in order, from any thread") {
  EventLoop loop;
  std::string seen;
  std::thread other([&] {
    for (char c = 'a'; c <= 'e'; ++c) loop.post([&seen, c] { seen += c; });
    loop.post([&] { loop.stop(); });
  });
  loop.run();
  other.join();
  CHECK(seen == "abcde");
}

TEST_CASE("timers run in the order of their times, cancelled ones never") {
  EventLoop loop;
  std::string seen;
  loop.after(milliseconds(20), [&] {
    seen += '2';
    loop.stop();
  });
  loop.after(milliseconds(1), [&] { seen += '1'; });
  const auto cancelled = loop.after(milliseconds(2), [&] { seen += 'x'; });
  loop.cancel(cancelled);
  loop.cancel(cancelled);
  loop.cancel(0);
  loop.run();
  CHECK(seen == "12");
}

TEST_CASE("handlers may end their own watch and others'") {
  EventLoop loop;
  Pipe a = std::move(*make_pipe());
  Pipe b = std::move(*make_pipe());
  REQUIRE(write_all(a.write_end.get(), "x").ok());
  REQUIRE(write_all(b.write_end.get(), "x").ok());
  int ready = 0;
  auto once = [&] {
    ++ready;
    loop.unwatch(a.read_end.get());
    loop.unwatch(b.read_end.get());
    loop.after(milliseconds(5), [&] { loop.stop(); });
  };
  loop.watch(a.read_end.get(), POLLIN, once);
  loop.watch(b.read_end.get(), POLLIN, once);
  loop.run();
  CHECK(ready == 1);
}

TEST_CASE("the end of a pipe is reported") {
  EventLoop loop;
  Pipe pipe = std::move(*make_pipe());
  pipe.write_end.reset();
  loop.watch(pipe.read_end.get(), POLLIN, [&] { loop.stop(); });
  loop.run();
  SUCCEED();
}

}  // namespace
}  // namespace allring
