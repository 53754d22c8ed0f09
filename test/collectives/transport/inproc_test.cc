#include "collectives/transport/inproc.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

namespace allring {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Deadline soon() { return deadline_after(seconds(20)); }
Deadline at_once() { return deadline_after(milliseconds(1)); }

TEST_CASE("messages arrive in order, whichever side posts first") {
  InprocNetwork network(2);
  Transport& a = network.transport(0);
  Transport& b = network.transport(1);
  std::string first(3, ' '), second(5, ' ');

  const Ticket early = b.post_recv(0, 1, std::as_writable_bytes(std::span(first))).value();
  const Ticket one = a.post_send(1, 1, bytes_of("one")).value();
  const Ticket two = a.post_send(1, 2, bytes_of("twice")).value();
  const Ticket late = b.post_recv(0, 2, std::as_writable_bytes(std::span(second))).value();

  CHECK(a.wait(two, soon()).ok());
  CHECK(a.wait(one, soon()).ok());
  CHECK(b.wait(late, soon()).ok());
  CHECK(b.wait(early, soon()).ok());
  CHECK(first == "one");
  CHECK(second == "twice");
}

TEST_CASE("a buffered send is complete at once and its buffer free") {
  InprocNetwork network(2);
  std::string text = "abc", got(3, ' ');
  const Ticket sent = network.transport(0).post_send(1, 1, bytes_of(text)).value();
  CHECK(network.transport(0).wait(sent, at_once()).ok());
  text = "xyz";
  const Ticket received =
      network.transport(1).post_recv(0, 1, std::as_writable_bytes(std::span(got))).value();
  CHECK(network.transport(1).wait(received, at_once()).ok());
  CHECK(got == "abc");
}

TEST_CASE("a rendezvous send completes only when it is received") {
  InprocNetwork network(2, InprocNetwork::Mode::kRendezvous);
  SECTION("received") {
    std::string got(3, ' ');
    const Ticket sent = network.transport(0).post_send(1, 1, bytes_of("abc")).value();
    const Ticket received =
        network.transport(1).post_recv(0, 1, std::as_writable_bytes(std::span(got))).value();
    CHECK(network.transport(0).wait(sent, at_once()).ok());
    CHECK(network.transport(1).wait(received, at_once()).ok());
    CHECK(got == "abc");
  }
  SECTION("not received") {
    const Ticket sent = network.transport(0).post_send(1, 7, bytes_of("abc")).value();
    const Status status = network.transport(0).wait(sent, at_once());
    CHECK(status.code() == StatusCode::kTimedOut);
    CHECK_THAT(status.message(), Catch::Contains("rank 0 waited for rank 1 to receive tag 7"));
  }
}

TEST_CASE("empty messages are messages") {
  for (auto mode : {InprocNetwork::Mode::kBuffered, InprocNetwork::Mode::kRendezvous}) {
    InprocNetwork network(2, mode);
    const Ticket sent = network.transport(0).post_send(1, 1, {}).value();
    const Ticket received = network.transport(1).post_recv(0, 1, {}).value();
    CHECK(network.transport(0).wait(sent, soon()).ok());
    CHECK(network.transport(1).wait(received, soon()).ok());
  }
}

TEST_CASE("a tag or a length that differs is an error that names both") {
  InprocNetwork network(2, InprocNetwork::Mode::kRendezvous);
  std::string got(3, ' ');
  const Tag tag = GENERATE(1, 2);
  const std::string text = tag == 1 ? "four" : "tri";
  const Ticket sent = network.transport(0).post_send(1, 1, bytes_of(text)).value();
  const Ticket received =
      network.transport(1).post_recv(0, tag, std::as_writable_bytes(std::span(got))).value();
  const Status status = network.transport(1).wait(received, soon());
  CHECK(status.code() == StatusCode::kInternal);
  CHECK_THAT(status.message(), Catch::Contains("from rank 0") &&
                                   Catch::Contains("tag " + std::to_string(tag) + ", 3 bytes") &&
                                   Catch::Contains("tag 1, " + std::to_string(text.size())));
  CHECK(network.transport(0).wait(sent, soon()).code() == StatusCode::kInternal);
}

TEST_CASE("a receive that nobody answers times out and names who was awaited") {
  InprocNetwork network(3);
  std::string got(3, ' ');
  const Ticket received =
      network.transport(1).post_recv(2, 9, std::as_writable_bytes(std::span(got))).value();
  const Status status = network.transport(1).wait(received, at_once());
  CHECK(status.code() == StatusCode::kTimedOut);
  CHECK_THAT(status.message(), Catch::Contains("rank 1 waited for rank 2 to send tag 9, 3 bytes"));
}

TEST_CASE("abort wakes a blocked wait, and the first reason stays") {
  InprocNetwork network(2);
  Transport& transport = network.transport(0);
  std::string got(3, ' ');
  const Ticket received = transport.post_recv(1, 1, std::as_writable_bytes(std::span(got))).value();
  std::thread aborter([&] {
    transport.abort(Status::aborted("shut down"));
    transport.abort(Status::aborted("again"));
  });
  const Status status = transport.wait(received, soon());
  aborter.join();
  CHECK(status.to_string() == "aborted: shut down");
  const Ticket later = transport.post_send(1, 1, bytes_of("abc")).value();
  CHECK(transport.wait(later, soon()).to_string() == "aborted: shut down");
}

TEST_CASE("others lose a rank that aborts, after what it had sent") {
  InprocNetwork network(3);
  std::string got(3, ' '), nothing(3, ' ');
  const Ticket sent = network.transport(1).post_send(0, 1, bytes_of("abc")).value();
  CHECK(network.transport(1).wait(sent, soon()).ok());
  network.transport(1).abort(Status::aborted("killed"));

  Transport& survivor = network.transport(0);
  const Ticket before = survivor.post_recv(1, 1, std::as_writable_bytes(std::span(got))).value();
  const Ticket after = survivor.post_recv(1, 2, std::as_writable_bytes(std::span(nothing))).value();
  CHECK(survivor.wait(before, soon()).ok());
  CHECK(got == "abc");
  const Status status = survivor.wait(after, soon());
  CHECK(status.code() == StatusCode::kPeerLost);
  CHECK(status.lost_rank() == 1);

  // Rank 2 hears of it from rank 0, and still learns who was lost first.
  const Ticket relayed =
      network.transport(2).post_recv(0, 1, std::as_writable_bytes(std::span(got))).value();
  CHECK(network.transport(2).wait(relayed, soon()).lost_rank() == 1);
}

TEST_CASE("buffers are left alone after a failure") {
  InprocNetwork network(2, InprocNetwork::Mode::kRendezvous);
  std::string target = "keep";
  const Ticket received =
      network.transport(1).post_recv(0, 1, std::as_writable_bytes(std::span(target))).value();
  CHECK_FALSE(network.transport(1).wait(received, at_once()).ok());
  const Ticket sent = network.transport(0).post_send(1, 1, bytes_of("late")).value();
  CHECK(network.transport(0).wait(sent, soon()).code() == StatusCode::kPeerLost);
  CHECK(target == "keep");
}

}  // namespace
}  // namespace allring
