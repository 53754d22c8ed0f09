#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/base/status.h"
#include "runtime/request/message.h"

namespace allring {

/// Longer names are refused where they are submitted, and not believed where they are received.
inline constexpr std::size_t kMaxNameBytes = 64 << 10;
inline constexpr std::size_t kMaxDimensions = 64;
/// Of the text of an error; the writer cuts longer ones.
inline constexpr std::size_t kMaxMessageBytes = 64 << 10;

/// A message and the membership epoch that it belongs to, as they travel.
struct Envelope {
  std::uint32_t epoch = 0;
  ControlMessage message;
};

/// The wire form: little-endian, no padding; u8 format version, u8 type, u32 epoch, then the
/// members of the message in order. Lists of CacheIds become a bit vector where that is shorter.
std::vector<std::byte> encode(std::uint32_t epoch, const ControlMessage& message);

/// The message in `bytes`, which may be anything: never reads beyond them and never allocates more
/// than a small multiple of them.
/// @return kInternal if they are no message of this version.
Result<Envelope> decode(std::span<const std::byte> bytes);

}  // namespace allring
