#include "collectives/transport/shm_ring.h"

#include <algorithm>
#include <cstring>

#include "collectives/base/check.h"

namespace allring {

namespace {

constexpr std::size_t kControlBytes = 4096;
static_assert(sizeof(ShmRingControl) <= kControlBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "shared between processes");

/// How much is copied before the other side is told.
constexpr std::size_t kPieceBytes = 64 * 1024;

// Falling asleep and telling are "I store mine, then load yours" on both sides. Sequentially
// consistent stores and loads make sure that at least one of the two sees the other's, so no
// wake-up is missed.
constexpr auto kOrdered = std::memory_order_seq_cst;

}  // namespace

std::size_t shm_ring_bytes(std::size_t capacity) { return kControlBytes + capacity; }

ShmRingWriter::ShmRingWriter(std::span<std::byte> memory)
    : control_(reinterpret_cast<ShmRingControl*>(memory.data())),
      data_(memory.data() + kControlBytes),
      capacity_(memory.size() - kControlBytes) {
  ALLRING_CHECK(memory.size() > kControlBytes && (capacity_ & (capacity_ - 1)) == 0,
                "a ring's capacity is a power of two");
}

void ShmRingWriter::look(std::memory_order order) {
  read_ = control_->read.load(order);
  broken_ = broken_ || written_ - read_ > capacity_;
}

std::size_t ShmRingWriter::room(std::size_t wanted) {
  if (capacity_ - (written_ - read_) < wanted) look(std::memory_order_acquire);
  return broken_ ? 0 : capacity_ - (written_ - read_);
}

std::size_t ShmRingWriter::write(std::span<const Link::Source> parts) {
  std::size_t moved = 0;
  std::size_t untold = 0;
  for (Link::Source part : parts) {
    while (!part.empty()) {
      const std::size_t place = written_ & (capacity_ - 1);
      const std::size_t wanted =
          std::min({part.size(), capacity_ - place, kPieceBytes, capacity_ / 4});
      const std::size_t piece = std::min(wanted, room(wanted));
      if (piece == 0) break;
      std::memcpy(data_ + place, part.data(), piece);
      part = part.subspan(piece);
      written_ += piece;
      moved += piece;
      untold += piece;
      if (untold >= std::min(kPieceBytes, capacity_ / 4)) {
        control_->written.store(written_, std::memory_order_release);
        untold = 0;
      }
    }
    if (!part.empty()) break;
  }
  if (moved > 0) control_->written.store(written_, kOrdered);
  return moved;
}

bool ShmRingWriter::full() { return room(1) == 0; }

bool ShmRingWriter::reader_needs_waking() {
  return control_->reader_asleep.load(kOrdered) != 0 &&
         control_->reader_asleep.exchange(0, std::memory_order_relaxed) != 0;
}

bool ShmRingWriter::fall_asleep() {
  control_->writer_asleep.store(1, kOrdered);
  look(kOrdered);
  return full() && !broken_;
}

void ShmRingWriter::wake_up() { control_->writer_asleep.store(0, std::memory_order_relaxed); }

ShmRingReader::ShmRingReader(std::span<std::byte> memory)
    : control_(reinterpret_cast<ShmRingControl*>(memory.data())),
      data_(memory.data() + kControlBytes),
      capacity_(memory.size() - kControlBytes) {
  ALLRING_CHECK(memory.size() > kControlBytes && (capacity_ & (capacity_ - 1)) == 0,
                "a ring's capacity is a power of two");
}

void ShmRingReader::look(std::memory_order order) {
  written_ = control_->written.load(order);
  broken_ = broken_ || written_ - read_ > capacity_;
}

std::size_t ShmRingReader::available(std::size_t wanted) {
  if (written_ - read_ < wanted) look(std::memory_order_acquire);
  return broken_ ? 0 : written_ - read_;
}

std::size_t ShmRingReader::read(std::span<const Link::Sink> parts) {
  std::size_t moved = 0;
  std::size_t untold = 0;
  for (Link::Sink part : parts) {
    while (!part.empty()) {
      const std::size_t place = read_ & (capacity_ - 1);
      const std::size_t wanted =
          std::min({part.size(), capacity_ - place, kPieceBytes, capacity_ / 4});
      const std::size_t piece = std::min(wanted, available(wanted));
      if (piece == 0) break;
      std::memcpy(part.data(), data_ + place, piece);
      part = part.subspan(piece);
      read_ += piece;
      moved += piece;
      untold += piece;
      if (untold >= std::min(kPieceBytes, capacity_ / 4)) {
        control_->read.store(read_, std::memory_order_release);
        untold = 0;
      }
    }
    if (!part.empty()) break;
  }
  if (moved > 0) control_->read.store(read_, kOrdered);
  return moved;
}

bool ShmRingReader::empty() { return available(1) == 0; }

bool ShmRingReader::writer_needs_waking() {
  return control_->writer_asleep.load(kOrdered) != 0 &&
         control_->writer_asleep.exchange(0, std::memory_order_relaxed) != 0;
}

bool ShmRingReader::fall_asleep() {
  control_->reader_asleep.store(1, kOrdered);
  look(kOrdered);
  return empty() && !broken_;
}

void ShmRingReader::wake_up() { control_->reader_asleep.store(0, std::memory_order_relaxed); }

}  // namespace allring
