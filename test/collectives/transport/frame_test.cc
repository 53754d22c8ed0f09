#include "collectives/transport/frame.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace allring {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t count, std::mt19937& random) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

/// Takes up to `most` bytes from what a writer or reader has next; `move` gets each span.
template <typename Parts, typename Move>
std::size_t walk(const Parts& parts, std::size_t most, Move move) {
  std::size_t moved = 0;
  for (const auto& part : parts) {
    const std::size_t count = std::min(part.size(), most - moved);
    if (count > 0) move(part.first(count));
    moved += count;
    if (count < part.size()) break;
  }
  return moved;
}

/// The bytes of a frame, written in steps of random size.
Bytes write_frame(bool checked, Tag tag, const Bytes& payload, std::mt19937& random) {
  FrameWriter writer(checked);
  writer.start(tag, payload);
  Bytes stream;
  while (!writer.done()) {
    writer.moved(walk(writer.next(), random() % 400'000, [&](Link::Source part) {
      stream.insert(stream.end(), part.begin(), part.end());
    }));
  }
  return stream;
}

/// What a reader says that gets `stream` in steps of random size and then nothing more.
Status read_frame(FrameReader& reader, const Bytes& stream, std::mt19937& random) {
  std::size_t place = 0;
  while (!reader.done() && place < stream.size()) {
    const std::size_t most = std::min<std::size_t>(random() % 400'000, stream.size() - place);
    const std::size_t moved = walk(reader.next(), most, [&](Link::Sink part) {
      std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(place), part.size(), part.begin());
      place += part.size();
    });
    ALLRING_RETURN_IF_ERROR(reader.moved(moved));
  }
  return reader.done() ? Status() : Status::timed_out("the frame is not complete");
}

TEST_CASE("frames arrive whole however they are cut up") {
  const bool checked = GENERATE(false, true);
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (const std::size_t size : {0, 1, 3, 4096, 262143, 262144, 262145, 1000003}) {
    const Bytes sent = random_bytes(size, random);
    const Bytes stream = write_frame(checked, 7, sent, random);
    CHECK(stream.size() == size + (checked ? 24 : 16));
    Bytes received(size);
    FrameReader reader(checked);
    reader.start(7, received);
    REQUIRE(read_frame(reader, stream, random).to_string() == "ok");
    CHECK(received == sent);
    CHECK(reader.moved_bytes() == reader.frame_bytes());
  }
}

TEST_CASE("one writer and one reader carry frame after frame") {
  std::mt19937 random(1);
  FrameReader reader(true);
  for (Tag tag = 1; tag < 20; ++tag) {
    const Bytes sent = random_bytes(tag * 1000, random);
    Bytes received(sent.size());
    reader.start(tag, received);
    REQUIRE(read_frame(reader, write_frame(true, tag, sent, random), random).ok());
    CHECK(received == sent);
  }
}

TEST_CASE("another message than the expected one is told with both") {
  const bool checked = GENERATE(false, true);
  std::mt19937 random(1);
  const Bytes stream = write_frame(checked, 7, Bytes(100), random);
  Bytes received(100);
  FrameReader other_tag(checked);
  other_tag.start(8, received);
  const Status tag = read_frame(other_tag, stream, random);
  CHECK(tag.code() == StatusCode::kInternal);
  CHECK_THAT(tag.message(),
             Catch::Contains("tag 8 with 100 bytes") && Catch::Contains("tag 7 with 100 bytes"));
  Bytes shorter(99);
  FrameReader other_size(checked);
  other_size.start(7, shorter);
  CHECK_THAT(read_frame(other_size, stream, random).message(),
             Catch::Contains("tag 7 with 99 bytes") && Catch::Contains("tag 7 with 100 bytes"));
}

TEST_CASE("any flipped bit of a checked frame is found") {
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::size_t size = GENERATE(0, 1, 50, 300'000);
  const Bytes sent = random_bytes(size, random);
  const Bytes stream = write_frame(true, 7, sent, random);
  for (int round = 0; round < 100; ++round) {
    const std::size_t place = round < 30 ? round % stream.size() : random() % stream.size();
    Bytes damaged = stream;
    damaged[place] ^= static_cast<std::byte>(1 << random() % 8);
    Bytes received(size);
    FrameReader reader(true);
    reader.start(7, received);
    INFO("byte " << place << " of " << stream.size());
    const Status status = read_frame(reader, damaged, random);
    CHECK(status.code() == StatusCode::kInternal);
    CHECK_THAT(status.message(), Catch::Contains("wrong CRC32C"));
  }
}

}  // namespace
}  // namespace allring
