#include "runtime/request/wire.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>

using namespace allring;

namespace {

template <typename T>
T round_trip(const T& message, std::uint32_t epoch = 7) {
  const std::vector<std::byte> bytes = encode(epoch, message);
  const Result<Envelope> envelope = decode(bytes);
  REQUIRE(envelope.ok());
  CHECK(envelope->epoch == epoch);
  REQUIRE(std::holds_alternative<T>(envelope->message));
  return std::get<T>(envelope->message);
}

Request full_request() {
  Request request;
  request.kind = CollectiveKind::kAlltoall;
  request.name = std::string("name \0 with zero", 16);
  request.dtype = DataType::kBfloat16;
  request.op = ReduceOp::kProduct;
  request.prescale = 0.1;
  request.postscale = -3;
  request.root = 5;
  request.device = 2;
  request.shape = {0, 1, std::int64_t{1} << 40};
  request.splits = {0, 7, 300};
  request.group = "g";
  request.group_size = 4;
  request.unnamed = true;
  return request;
}

Request random_request(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  Request request;
  request.kind = static_cast<CollectiveKind>(below(6));
  request.name.assign(below(40), static_cast<char>('a' + below(26)));
  request.dtype = static_cast<DataType>(below(kDataTypeCount));
  request.op = static_cast<ReduceOp>(below(6));
  if (below(2)) request.prescale = below(100) / 8.0;
  if (below(2)) request.postscale = below(100) / 8.0;
  if (below(2)) request.root = below(1 << 20);
  if (below(2)) request.device = below(8);
  for (int i = below(5); i > 0; --i) request.shape.push_back(std::int64_t{below(1 << 30)} * 5000);
  for (int i = below(5); i > 0; --i) request.splits.push_back(below(1000));
  if (below(2)) {
    request.group = "group" + std::to_string(below(9));
    request.group_size = below(100);
  }
  request.unnamed = below(2) != 0;
  return request;
}

std::vector<CacheId> random_ids(std::mt19937& random, bool ascending) {
  std::vector<CacheId> ids(random() % 50);
  const CacheId most = random() % 2 ? 60 : 1 << 24;
  for (CacheId& id : ids) id = random() % most;
  if (ascending) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }
  return ids;
}

Decision random_decision(std::mt19937& random) {
  Decision decision;
  decision.sequence = random();
  if (random() % 2)
    decision.limits = FusionLimits{static_cast<std::int64_t>(random()) * 3,
                                   static_cast<std::int64_t>(random() % 100)};
  for (int i = random() % 6; i > 0; --i) {
    switch (random() % 3) {
      case 0:
        decision.entries.emplace_back(random_ids(random, false));
        break;
      case 1: {
        Response response{"r" + std::to_string(random()), std::nullopt, {}};
        if (random() % 2) response.remember = random() % 1000;
        for (int j = random() % 9; j > 0; --j) response.sizes.push_back(random());
        decision.entries.emplace_back(response);
        break;
      }
      default:
        decision.entries.emplace_back(
            Rejection{StatusCode::kTimedOut, "because", {"a", "b"}, {1, 3}});
    }
  }
  return decision;
}

ControlMessage random_message(std::mt19937& random) {
  switch (random() % 8) {
    case 0: {
      Announcement announcement;
      announcement.rank = random() % 5000;
      announcement.seen = random();
      announcement.cached = random_ids(random, true);
      for (int i = random() % 4; i > 0; --i)
        announcement.requests.push_back(random_request(random));
      return announcement;
    }
    case 1:
      return random_decision(random);
    case 2:
      return FailureReport{3, Status::peer_lost(2, "gone")};
    case 3:
      return Abort{Status::internal("oops")};
    case 4:
      return Leave{9};
    case 5:
      return Stop{1};
    case 6:
      return Drained{4};
    default:
      return Closed{};
  }
}

}  // namespace

TEST_CASE("announcements survive the wire") {
  Announcement announcement{3, 1000000, {0, 1, 2, 3, 9}, {full_request(), Request()}};
  CHECK(round_trip(announcement) == announcement);
  CHECK(round_trip(Announcement()) == Announcement());
}

TEST_CASE("decisions survive the wire") {
  Decision decision;
  decision.sequence = 12;
  decision.limits = FusionLimits{4 << 20, 64 << 10};
  decision.entries = {CachedRun{5, 3, 4}, Response{"x", 17, {1, 2, 3}}, Response{"y", {}, {}},
                      Rejection{StatusCode::kMismatch, "text", {"a", "b"}, {0, 2}}, CachedRun{}};
  CHECK(round_trip(decision) == decision);
}

TEST_CASE("statuses survive the wire") {
  const FailureReport report = round_trip(FailureReport{2, Status::peer_lost(3, "rank 3 is gone")});
  CHECK(report.rank == 2);
  CHECK(report.status.code() == StatusCode::kPeerLost);
  CHECK(report.status.lost_rank() == 3);
  CHECK(report.status.message() == "rank 3 is gone");
  const Abort abort = round_trip(Abort{Status::out_of_memory("no memory")});
  CHECK(abort.status.code() == StatusCode::kOutOfMemory);
  CHECK(!abort.status.lost_rank());
  CHECK(round_trip(Leave{4}).rank == 4);
  CHECK(round_trip(Stop{5}).rank == 5);
  CHECK(round_trip(Drained{6}).rank == 6);
  round_trip(Closed{});
}

TEST_CASE("a text that is too long is cut, not refused") {
  const Abort abort = round_trip(Abort{Status::internal(std::string(1 << 20, 'x'))});
  CHECK(abort.status.message().size() == kMaxMessageBytes);
}

TEST_CASE("remembered tensors cost about a bit each") {
  Announcement all{0, 1, {}, {}};
  for (CacheId id = 0; id < 8000; ++id) all.cached.push_back(id);
  CHECK(encode(0, all).size() < 1020);
  CHECK(round_trip(all) == all);
  const Announcement few{0, 1, {3, 100000, 200000}, {}};
  CHECK(encode(0, few).size() < 24);
  CHECK(round_trip(few) == few);
}

TEST_CASE("random messages survive the wire") {
  const unsigned seed = 20;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const ControlMessage message = random_message(random);
    const std::vector<std::byte> bytes = encode(1, message);
    const Result<Envelope> envelope = decode(bytes);
    REQUIRE(envelope.ok());
    CHECK(encode(1, envelope->message) == bytes);
  }
}

TEST_CASE("cut messages are refused") {
  std::mt19937 random(21);
  for (int i = 0; i < 200; ++i) {
    const std::vector<std::byte> bytes = encode(1, random_message(random));
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const Result<Envelope> envelope = decode(std::span(bytes).first(length));
      REQUIRE(!envelope.ok());
      CHECK(envelope.status().code() == StatusCode::kInternal);
    }
  }
}

TEST_CASE("mutated and random bytes never crash and never make much of little") {
  const unsigned seed = 22;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes = encode(1, random_message(random));
    if (i % 4 == 0) bytes.resize(random() % 200);
    for (int j = random() % 6; j >= 0 && !bytes.empty(); --j)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    // Mostly, get past the header.
    if (bytes.size() > 2 && i % 8 != 0) {
      bytes[0] = std::byte{1};
      bytes[1] = static_cast<std::byte>(random() % 9);
    }
    const Result<Envelope> envelope = decode(bytes);
    if (!envelope.ok()) continue;
    if (const auto* announcement = std::get_if<Announcement>(&envelope->message)) {
      CHECK(announcement->cached.size() <= 8 * bytes.size());
      CHECK(announcement->requests.size() <= bytes.size());
    }
    const std::vector<std::byte> again = encode(envelope->epoch, envelope->message);
    CHECK(decode(again).ok());
  }
}

TEST_CASE("lengths that lie do not make the decoder reserve memory") {
  // An announcement with 2^60 requests, and a bit vector of 2^60 bytes.
  for (const std::uint8_t form : {0, 1}) {
    std::vector<std::byte> bytes = encode(1, Announcement());
    bytes.resize(8);  // format, type, epoch, rank, seen
    bytes.push_back(static_cast<std::byte>(form));
    for (int i = 0; i < 8; ++i) bytes.push_back(std::byte{0xff});
    bytes.push_back(std::byte{0x0f});
    bytes.push_back(std::byte{0x00});
    CHECK(!decode(bytes).ok());
  }
}
