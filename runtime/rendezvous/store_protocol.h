#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectives/base/status.h"

namespace allring {

// What a StoreClient and a StoreServer say to each other once the handshake has passed, all numbers
// little endian:
//
//   u32 bytes after this field | u8 type | u32 request id | key and value, by type
//
//   kPut     u32 key bytes, key, value   -> kOk
//   kWait    key                         -> kValue, value: once the key exists, so out of order
//   kRemove  key                         -> kOk
//   kCancel  nothing; forgets the kWait of this id. No answer, but its kValue may be on the way
//
// The client chooses ids; an answer carries the id of its request.

enum class StoreFrameType : std::uint8_t {
  kPut = 1,
  kWait = 2,
  kRemove = 3,
  kCancel = 4,
  kOk = 64,
  kValue = 65,
};

/// Of one frame after its length field.
inline constexpr std::size_t kLargestStoreFrame = 64u << 20;
inline constexpr std::size_t kLongestStoreKey = 4096;

/// One frame. The views point into what it was parsed from.
struct StoreFrame {
  StoreFrameType type = StoreFrameType::kOk;
  std::uint32_t id = 0;
  std::string_view key;
  std::string_view value;

  /// With the length field. REQUIRES: within the limits above.
  std::string encode() const;
  /// @param body what follows the length field. @return kInvalidArgument saying what is wrong.
  static Result<StoreFrame> parse(std::string_view body);
};

/// The head of an answer whose value, of `value_bytes`, follows from elsewhere.
std::string encode_store_answer(StoreFrameType type, std::uint32_t id, std::size_t value_bytes);

/// Cuts a stream of bytes into frames. Its memory grows with what has really arrived, not with
/// what a length field promises. Thread-compatible.
class StoreFrameReader {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }

  /// The next frame's body, if it is complete; valid until the next call of anything.
  /// @return kInvalidArgument if the length field is out of bounds.
  Result<std::optional<std::string_view>> next();

 private:
  std::string buffer_;
  std::size_t taken_ = 0;
};

}  // namespace allring
