#include "collectives/kernels/crc32c.h"

#include <array>

#include "collectives/kernels/crc32c_polynomial.h"

namespace allring {

namespace {

// kTables[k][b]: what byte b does to the CRC with k more bytes after it. Eight bytes at a time:
// Kounavis and Berry, "Novel table lookup-based algorithms for high-performance CRC generation",
// IEEE Trans. Computers 57 (2008): slicing-by-8.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = kernels::times_x(value);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

std::uint32_t by_tables(std::uint32_t state, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (; bytes >= 8; bytes -= 8, at += 8) {
    // Byte by byte, so that the order of bytes in a word does not matter.
    state = kTables[7][(state ^ at[0]) & 0xff] ^ kTables[6][((state >> 8) ^ at[1]) & 0xff] ^
            kTables[5][((state >> 16) ^ at[2]) & 0xff] ^ kTables[4][(state >> 24) ^ at[3]] ^
            kTables[3][at[4]] ^ kTables[2][at[5]] ^ kTables[1][at[6]] ^ kTables[0][at[7]];
  }
  for (; bytes > 0; --bytes, ++at) state = (state >> 8) ^ kTables[0][(state ^ *at) & 0xff];
  return state;
}

using Step = std::uint32_t (*)(std::uint32_t state, const void* data, std::size_t bytes);

Step choose_step() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
    return kernels::crc32c_sse42;
  }
#endif
  return by_tables;
}

}  // namespace

std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t bytes) {
  static const Step step = choose_step();
  return ~step(~crc, data, bytes);
}

std::uint32_t crc32c_portable(std::uint32_t crc, const void* data, std::size_t bytes) {
  return ~by_tables(~crc, data, bytes);
}

}  // namespace allring
