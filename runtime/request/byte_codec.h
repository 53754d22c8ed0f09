#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace allring {

/// Appends little-endian values to a buffer. Thread-compatible.
class ByteWriter {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<std::byte>(value)); }
  void u32(std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) u8(static_cast<std::uint8_t>(value >> shift));
  }
  void u64(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) u8(static_cast<std::uint8_t>(value >> shift));
  }
  void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }
  /// Seven bits a byte, low ones first: small numbers take one byte.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) u8(static_cast<std::uint8_t>(value | 0x80));
    u8(static_cast<std::uint8_t>(value));
  }
  /// A varint that is short for numbers near zero of either sign.
  void signed_varint(std::int64_t value) {
    varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view value) {
    varint(value.size());
    const auto* data = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), data, data + value.size());
  }
  void raw(std::span<const std::byte> value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }

  std::size_t size() const { return bytes_.size(); }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Takes little-endian values off the front of a buffer that may hold anything. The first value
/// that does not fit makes ok() false for good, and this and all later ones come out as zero or
/// empty; so a decoder reads on and asks once. Thread-compatible.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  /// Well read and nothing left over.
  bool done() const { return ok_ && rest_.empty(); }
  std::size_t remaining() const { return rest_.size(); }
  /// For values that were read but make no sense.
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  std::uint8_t u8() { return static_cast<std::uint8_t>(fixed(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(fixed(4)); }
  std::uint64_t u64() { return fixed(8); }
  double f64() { return std::bit_cast<double>(fixed(8)); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = u8();
      if (!ok_) return 0;
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail();
    return 0;
  }
  std::int64_t signed_varint() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  /// A varint of at most `maximum`; a larger one is a failure.
  std::uint64_t varint_up_to(std::uint64_t maximum) {
    const std::uint64_t value = varint();
    if (value > maximum) fail();
    return ok_ ? value : 0;
  }
  /// The number of items that follow, each of at least `least_bytes`: never more than what is left
  /// of the buffer can hold, so it is safe to reserve.
  std::size_t item_count(std::size_t least_bytes) {
    return static_cast<std::size_t>(varint_up_to(remaining() / least_bytes));
  }
  std::span<const std::byte> raw(std::size_t bytes) {
    if (bytes > rest_.size()) {
      fail();
      return {};
    }
    const auto taken = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return taken;
  }
  std::string text(std::size_t maximum_bytes) {
    const auto taken = raw(static_cast<std::size_t>(varint_up_to(maximum_bytes)));
    return std::string(reinterpret_cast<const char*>(taken.data()), taken.size());
  }

 private:
  std::uint64_t fixed(std::size_t bytes) {
    const auto taken = raw(bytes);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < taken.size(); ++i)
      value |= static_cast<std::uint64_t>(taken[i]) << (8 * i);
    return value;
  }

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace allring
