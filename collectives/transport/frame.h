#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/base/status.h"
#include "collectives/transport/link.h"
#include "collectives/transport/transport.h"

namespace allring {

// How a message lies in a link's stream: tag (u64) and length (u64), little endian, then the
// payload. A checked frame has CRC32C (u32) of the header after the header, and of the payload
// after the payload. Writer and reader are pure: they say which bytes are next and are told how
// many moved. Checksums are computed piece by piece next to the moving, while the bytes are in the
// cache.

/// How much of a checked payload moves at a time.
inline constexpr std::size_t kCheckedPieceBytes = 256 * 1024;

/// The sending side of one link, one frame at a time.
class FrameWriter {
 public:
  using Parts = std::array<Link::Source, 3>;

  explicit FrameWriter(bool checked) : checked_(checked) {}

  /// Begins a frame. `payload` stays as it is until done().
  void start(Tag tag, std::span<const std::byte> payload);
  /// What is to be written next; empty spans are left out by whoever writes.
  Parts next();
  /// So many of those bytes were written.
  void moved(std::size_t bytes) { moved_ += bytes; }
  bool done() const { return moved_ == total_; }
  std::size_t frame_bytes() const { return total_; }
  std::size_t moved_bytes() const { return moved_; }

 private:
  const bool checked_;
  std::span<const std::byte> payload_;
  std::array<std::byte, 20> header_{};
  std::array<std::byte, 4> trailer_{};
  std::size_t header_bytes_ = 0;
  std::size_t total_ = 0;
  std::size_t moved_ = 0;
  std::size_t checksummed_ = 0;  // of the payload
  std::uint32_t checksum_ = 0;
};

/// The receiving side.
class FrameReader {
 public:
  using Parts = std::array<Link::Sink, 3>;

  explicit FrameReader(bool checked) : checked_(checked) {}

  /// Expects a frame of this tag and of payload.size() bytes next.
  void start(Tag tag, std::span<std::byte> payload);
  /// Where the next bytes are to be put.
  Parts next();
  /// So many of those bytes arrived. @return kInternal if the header is of another message, or if
  ///         a checksum shows that the frame was changed on its way; without the names of the
  ///         ranks.
  Status moved(std::size_t bytes);
  bool done() const { return moved_ == total_; }
  std::size_t frame_bytes() const { return total_; }
  std::size_t moved_bytes() const { return moved_; }

 private:
  Status check_header() const;

  const bool checked_;
  Tag tag_ = 0;
  std::span<std::byte> payload_;
  std::array<std::byte, 20> header_{};
  std::array<std::byte, 4> trailer_{};
  std::size_t header_bytes_ = 0;
  std::size_t total_ = 0;
  std::size_t moved_ = 0;
  std::size_t checksummed_ = 0;
  std::uint32_t checksum_ = 0;
};

}  // namespace allring
