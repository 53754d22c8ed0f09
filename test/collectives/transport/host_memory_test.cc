#include "collectives/transport/host_memory.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>

#include "collectives/transport/heap_host_memory.h"

namespace allring {
namespace {

constexpr WaitPolicy kSleepAtOnce{.spins = 0, .yields = 0};

Deadline soon() { return deadline_after(seconds(20)); }

HostMemory::Shape shape_for(int ranks) {
  return {.ranks = ranks, .buffers = 3, .slot_bytes = 4096};
}

TEST_CASE("flags, lines and slots do not overlap, and every rank sees the same") {
  const HostMemory::Shape shape = shape_for(3);
  auto views = make_heap_host_memory(shape, kSleepAtOnce);
  const std::byte* end = views[0]->slot(0, 0) + shape.buffers * shape.ranks * shape.slot_bytes;
  CHECK(static_cast<std::size_t>(end - views[0]->line(0, 0)) <= shape.bytes());
  for (int parity : {0, 1}) {
    for (Rank owner = 0; owner < 3; ++owner) {
      std::memset(views[owner]->line(parity, owner), 1 + parity * 3 + owner, 64);
    }
  }
  for (int buffer = 0; buffer < 3; ++buffer) {
    for (Rank owner = 0; owner < 3; ++owner)
      std::memset(views[owner]->slot(buffer, owner), 10 + buffer * 3 + owner, shape.slot_bytes);
  }
  for (int line = 0; line < HostMemory::kFlagLines; ++line) {
    for (Rank owner = 0; owner < 3; ++owner)
      CHECK(views[2]->wait_at_least(line, owner, 0, soon()).ok());
  }
  for (int parity : {0, 1}) {
    for (Rank owner = 0; owner < 3; ++owner)
      CHECK(views[1]->line(parity, owner)[63] == std::byte(1 + parity * 3 + owner));
  }
  for (int buffer = 0; buffer < 3; ++buffer) {
    for (Rank owner = 0; owner < 3; ++owner) {
      const std::byte* slot = views[(owner + 1) % 3]->slot(buffer, owner);
      CHECK(slot[0] == std::byte(10 + buffer * 3 + owner));
      CHECK(slot[shape.slot_bytes - 1] == std::byte(10 + buffer * 3 + owner));
    }
  }
}

TEST_CASE("two ranks hand a counter to and fro under every policy") {
  const std::string mode = GENERATE("auto", "spin", "yield", "block");
  // More ranks than cores for "auto", too.
  auto views = make_heap_host_memory(shape_for(2), WaitPolicy::choose(1000, mode));
  constexpr std::uint32_t kTurns = 2000;
  std::uint32_t shared = 0;  // ordered by the flags: the thread sanitizer checks that
  Status other;
  std::thread peer([&] {
    for (std::uint32_t turn = 1; turn <= kTurns && other.ok(); ++turn) {
      other = views[1]->wait_at_least(0, 0, turn, soon());
      ++shared;
      views[1]->post(0, turn);
    }
  });
  Status own;
  for (std::uint32_t turn = 1; turn <= kTurns && own.ok(); ++turn) {
    ++shared;
    views[0]->post(0, turn);
    own = views[0]->wait_at_least(0, 1, turn, soon());
  }
  peer.join();
  CHECK(own.ok());
  CHECK(other.ok());
  CHECK(shared == 2 * kTurns);
}

TEST_CASE("flags count on past 2^32") {
  auto views = make_heap_host_memory(shape_for(2), kSleepAtOnce);
  views[0]->post(0, 0x7fffffffu);
  views[0]->post(0, 0xfffffffeu);
  CHECK(views[1]->wait_at_least(0, 0, 0xfffffffeu, soon()).ok());
  views[0]->post(0, 3);
  CHECK(views[1]->wait_at_least(0, 0, 0xffffffffu, soon()).ok());
  CHECK(views[1]->wait_at_least(0, 0, 3, soon()).ok());
  CHECK(views[1]->wait_at_least(0, 0, 4, deadline_after(milliseconds(1))).code() ==
        StatusCode::kTimedOut);
}

TEST_CASE("a deadline ends a wait and names who was awaited") {
  const std::string mode = GENERATE("auto", "spin", "yield", "block");
  auto views = make_heap_host_memory(shape_for(3), WaitPolicy::choose(3, mode));
  const Status flag = views[1]->wait_at_least(0, 2, 1, deadline_after(milliseconds(2)));
  CHECK(flag.code() == StatusCode::kTimedOut);
  CHECK_THAT(flag.message(), Catch::Contains("rank 1") && Catch::Contains("rank 2"));
  const Status line =
      views[1]->wait_until([] { return false; }, 0, deadline_after(milliseconds(2)));
  CHECK(line.code() == StatusCode::kTimedOut);
}

TEST_CASE("abort ends a wait, now and later, and the first reason stays") {
  const std::string mode = GENERATE("spin", "yield", "block");
  auto views = make_heap_host_memory(shape_for(2), WaitPolicy::choose(2, mode));
  std::thread aborter([&] {
    views[0]->abort(Status::aborted("shut down"));
    views[0]->abort(Status::aborted("again"));
  });
  CHECK(views[0]->wait_at_least(0, 1, 1, soon()).to_string() == "aborted: shut down");
  aborter.join();
  CHECK(views[0]->wait_until([] { return false; }, 1, soon()).to_string() == "aborted: shut down");
  // What has arrived already needs no waiting.
  CHECK(views[0]->wait_at_least(0, 1, 0, soon()).ok());
}

TEST_CASE("a sleeper in another process is woken") {
  const HostMemory::Shape shape = shape_for(2);
  void* memory =
      mmap(nullptr, shape.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  const std::span bytes(static_cast<std::byte*>(memory), shape.bytes());
  constexpr std::uint32_t kTurns = 300;
  const pid_t child = fork();
  if (child == 0) {
    HostMemory view(shape, 1, bytes, nullptr, kSleepAtOnce);
    for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
      if (!view.wait_at_least(0, 0, turn, soon()).ok()) _exit(1);
      view.post(0, turn);
    }
    _exit(0);
  }
  HostMemory view(shape, 0, bytes, nullptr, kSleepAtOnce);
  const TimePoint start = Clock::real().now();
  Status status;
  for (std::uint32_t turn = 1; turn <= kTurns && status.ok(); ++turn) {
    view.post(0, turn);
    status = view.wait_at_least(0, 1, turn, soon());
  }
  CHECK(status.ok());
  // Missed wake-ups would take 10 ms each.
  CHECK(Clock::real().now() - start < milliseconds(10) * kTurns);
  int exit_status = -1;
  REQUIRE(waitpid(child, &exit_status, 0) == child);
  CHECK(exit_status == 0);
  munmap(memory, shape.bytes());
}

}  // namespace
}  // namespace allring
