#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/transport/link.h"

namespace allring {

/// What the two sides of a ring of bytes in shared memory know of each other. Each word is written
/// by one side and has two cache lines of its own, as adjacent lines are fetched in pairs.
struct ShmRingControl {
  alignas(128) std::atomic<std::uint64_t> written{0};  ///< bytes ever written
  alignas(128) std::atomic<std::uint64_t> read{0};     ///< bytes ever read
  alignas(128) std::atomic<std::uint32_t> reader_asleep{0};
  alignas(128) std::atomic<std::uint32_t> writer_asleep{0};
};

/// Bytes of zeroed memory for a ring that holds `capacity` (a power of two).
std::size_t shm_ring_bytes(std::size_t capacity);

/// The writing end. One thread of one process; the reader is another's. Bytes are shown to the
/// reader in pieces, so that both copy at once.
class ShmRingWriter {
 public:
  /// @param memory shm_ring_bytes(capacity) of it, aligned to a page.
  explicit ShmRingWriter(std::span<std::byte> memory);

  /// Copies as much off the front of `parts` as fits. @return how much.
  std::size_t write(std::span<const Link::Source> parts);
  bool full();
  /// The other side's word makes no sense: something overwrote the memory. Nothing moves any more.
  bool broken() const { return broken_; }

  /// True once if the reader said that it sleeps and there is something for it: wake it.
  bool reader_needs_waking();
  /// Asks to be woken when there is room. @return false if there is room by now.
  bool fall_asleep();
  void wake_up();

 private:
  /// Free bytes; looks at the other side's word only if it knew of fewer than `wanted`.
  std::size_t room(std::size_t wanted);
  void look(std::memory_order order);

  ShmRingControl* control_;
  std::byte* data_;
  std::size_t capacity_;
  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;  // as last seen: the other side's line is fetched only when needed
  bool broken_ = false;
};

/// The reading end; as ShmRingWriter.
class ShmRingReader {
 public:
  explicit ShmRingReader(std::span<std::byte> memory);

  /// Fills `parts` from the front with what is there. @return how much.
  std::size_t read(std::span<const Link::Sink> parts);
  bool empty();
  bool broken() const { return broken_; }

  /// True once if the writer said that it sleeps and there is room for it: wake it.
  bool writer_needs_waking();
  /// Asks to be woken when there is something. @return false if there is by now.
  bool fall_asleep();
  void wake_up();

 private:
  std::size_t available(std::size_t wanted);
  void look(std::memory_order order);

  ShmRingControl* control_;
  const std::byte* data_;
  std::size_t capacity_;
  std::uint64_t written_ = 0;  // as last seen
  std::uint64_t read_ = 0;
  bool broken_ = false;
};

}  // namespace allring
