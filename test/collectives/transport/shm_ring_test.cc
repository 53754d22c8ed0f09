#include "collectives/transport/shm_ring.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace allring {
namespace {

using Bytes = std::vector<std::byte>;

class Memory {
 public:
  explicit Memory(std::size_t capacity)
      : size_(shm_ring_bytes(capacity)), memory_(std::aligned_alloc(4096, size_), &std::free) {
    std::memset(memory_.get(), 0, size_);
  }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(memory_.get()), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<void, decltype(&std::free)> memory_;
};

std::size_t write(ShmRingWriter& writer, const Bytes& bytes) {
  const Link::Source part = bytes;
  return writer.write(std::span(&part, 1));
}

std::size_t read(ShmRingReader& reader, Bytes* bytes) {
  const Link::Sink part = *bytes;
  return reader.read(std::span(&part, 1));
}

TEST_CASE("a ring holds as much as it says, and no more") {
  Memory memory(4096);
  ShmRingWriter writer(memory.bytes());
  ShmRingReader reader(memory.bytes());
  CHECK(reader.empty());
  Bytes sent(5000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7);
  CHECK(write(writer, sent) == 4096);
  CHECK(writer.full());
  CHECK(write(writer, sent) == 0);
  Bytes got(5000);
  CHECK(read(reader, &got) == 4096);
  CHECK(std::equal(got.begin(), got.begin() + 4096, sent.begin()));
  CHECK(read(reader, &got) == 0);
  CHECK_FALSE(writer.full());
}

TEST_CASE("parts are taken in order, across the end of the ring") {
  Memory memory(4096);
  ShmRingWriter writer(memory.bytes());
  ShmRingReader reader(memory.bytes());
  Bytes got(4000);
  REQUIRE(write(writer, got) == 4000);
  REQUIRE(read(reader, &got) == 4000);
  const Bytes a(10, std::byte{1});
  const Bytes b(300, std::byte{2});
  const Link::Source sources[] = {a, {}, b};
  CHECK(writer.write(sources) == 310);
  Bytes c(200);
  Bytes d(200);
  const Link::Sink sinks[] = {{}, c, d};
  CHECK(reader.read(sinks) == 310);
  CHECK(c[9] == std::byte{1});
  CHECK(c[10] == std::byte{2});
  CHECK(d[109] == std::byte{2});
  CHECK(d[110] == std::byte{0});
}

TEST_CASE("a sleeper is woken once, and only for something") {
  Memory memory(4096);
  ShmRingWriter writer(memory.bytes());
  ShmRingReader reader(memory.bytes());
  CHECK(reader.fall_asleep());
  CHECK_FALSE(writer.fall_asleep());  // there is room
  writer.wake_up();
  CHECK(write(writer, Bytes(5000)) == 4096);
  CHECK(writer.reader_needs_waking());
  CHECK_FALSE(writer.reader_needs_waking());
  CHECK_FALSE(reader.fall_asleep());  // there is something
  reader.wake_up();
  CHECK(writer.fall_asleep());
  Bytes got(1);
  CHECK(read(reader, &got) == 1);
  CHECK(reader.writer_needs_waking());
}

TEST_CASE("a ring that something else wrote to moves nothing any more") {
  Memory memory(4096);
  ShmRingWriter writer(memory.bytes());
  ShmRingReader reader(memory.bytes());
  auto* control = reinterpret_cast<ShmRingControl*>(memory.bytes().data());
  control->written = 5000;
  control->read = 1 << 20;
  Bytes bytes(5000);
  CHECK(read(reader, &bytes) == 0);
  CHECK(reader.broken());
  CHECK(write(writer, bytes) == 4096);  // which it knows to be free
  CHECK(write(writer, bytes) == 0);
  CHECK(writer.broken());
  CHECK_FALSE(writer.fall_asleep());
}

TEST_CASE("two threads, one ring, random pieces") {
  const std::size_t capacity = GENERATE(4096, 65536, 1 << 20);
  const unsigned seed = std::random_device()();
  INFO("seed " << seed);
  Memory memory(capacity);
  constexpr std::size_t kTotal = 8 << 20;
  auto written = std::async(std::launch::async, [&] {
    std::mt19937 random(seed);
    ShmRingWriter writer(memory.bytes());
    Bytes bytes(3 * capacity);
    for (std::size_t sent = 0; sent < kTotal;) {
      const std::size_t piece = std::min(1 + random() % bytes.size(), kTotal - sent);
      for (std::size_t i = 0; i < piece; ++i)
        bytes[i] = static_cast<std::byte>((sent + i) * 37 >> 3);
      for (std::size_t done = 0; done < piece;) {
        const Link::Source part = std::span(bytes).subspan(done, piece - done);
        const std::size_t moved = writer.write(std::span(&part, 1));
        if (moved == 0) std::this_thread::yield();
        done += moved;
      }
      sent += piece;
    }
  });
  std::mt19937 random(seed + 1);
  ShmRingReader reader(memory.bytes());
  Bytes bytes(2 * capacity);
  std::size_t wrong = 0;
  for (std::size_t got = 0; got < kTotal;) {
    const Link::Sink part = std::span(bytes).first(1 + random() % bytes.size());
    const std::size_t moved = reader.read(std::span(&part, 1));
    if (moved == 0) std::this_thread::yield();
    for (std::size_t i = 0; i < moved; ++i) {
      wrong += bytes[i] != static_cast<std::byte>((got + i) * 37 >> 3);
    }
    got += moved;
  }
  written.get();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace allring
