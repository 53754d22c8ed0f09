#include "runtime/negotiation/inproc_control_channel.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace allring {
namespace {

using Kind = ControlEvent::Kind;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(const ControlEvent& event) {
  return std::string(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size());
}

Deadline soon() { return deadline_after(seconds(20)); }

TEST_CASE("the star has rank 0 in its middle") {
  InprocControlHub hub(3);
  auto zero = hub.channel(0);
  auto two = hub.channel(2);
  CHECK(zero->parent() == -1);
  CHECK(std::vector<Rank>(zero->children().begin(), zero->children().end()) ==
        std::vector<Rank>{1, 2});
  CHECK(two->parent() == 0);
  CHECK(two->children().empty());
  CHECK(two->size() == 3);
}

TEST_CASE("messages keep their order, empty ones too, and a wake waits its turn") {
  InprocControlHub hub(2);
  auto zero = hub.channel(0);
  auto one = hub.channel(1);
  one->send(0, bytes_of("a"));
  zero->wake();
  zero->wake();
  one->send(0, {});
  ControlEvent event = zero->receive(soon());
  CHECK(event.kind == Kind::kMessage);
  CHECK(event.peer == 1);
  CHECK(text_of(event) == "a");
  CHECK(zero->receive(soon()).kind == Kind::kWoken);
  event = zero->receive(soon());
  CHECK(event.kind == Kind::kMessage);
  CHECK(event.bytes.empty());
  CHECK(zero->receive(deadline_after(milliseconds(1))).kind == Kind::kDeadline);
}

TEST_CASE("a wake reaches a thread that is blocked without a deadline") {
  InprocControlHub hub(1);
  auto alone = hub.channel(0);
  std::thread waker([&] { alone->wake(); });
  CHECK(alone->receive(kNoDeadline).kind == Kind::kWoken);
  waker.join();
}

TEST_CASE("a killed rank is reported once, after what it sent") {
  InprocControlHub hub(3);
  auto zero = hub.channel(0);
  auto one = hub.channel(1);
  auto two = hub.channel(2);
  one->send(0, bytes_of("last words"));
  hub.kill(1);
  hub.kill(1);
  CHECK(text_of(zero->receive(soon())) == "last words");
  ControlEvent lost = zero->receive(soon());
  CHECK(lost.kind == Kind::kPeerLost);
  CHECK(lost.peer == 1);
  CHECK(lost.reason.code() == StatusCode::kPeerLost);
  CHECK(lost.reason.lost_rank() == 1);
  CHECK(one->receive(soon()).kind == Kind::kPeerLost);
  one->send(0, bytes_of("ghost"));
  zero->send(1, bytes_of("to a ghost"));
  CHECK(zero->receive(deadline_after(milliseconds(1))).kind == Kind::kDeadline);
  two->send(0, bytes_of("alive"));
  CHECK(text_of(zero->receive(soon())) == "alive");
}

TEST_CASE("a destroyed channel looks like a closed link, and 64 ranks see rank 0 go") {
  InprocControlHub hub(64);
  std::vector<std::unique_ptr<ControlChannel>> channels;
  for (Rank rank = 0; rank < 64; ++rank) channels.push_back(hub.channel(rank));
  std::vector<ControlEvent> seen(64);
  std::vector<std::thread> threads;
  for (Rank rank = 1; rank < 64; ++rank)
    threads.emplace_back([&, rank] { seen[rank] = channels[rank]->receive(soon()); });
  channels[0].reset();
  for (std::thread& thread : threads) thread.join();
  for (Rank rank = 1; rank < 64; ++rank) {
    CHECK(seen[rank].kind == Kind::kPeerLost);
    CHECK(seen[rank].peer == 0);
  }
}

}  // namespace
}  // namespace allring
