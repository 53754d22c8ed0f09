#pragma once

#include <stddef.h>
#include <stdint.h>

// Arithmetic modulo the Castagnoli polynomial, at compile time only. Bits are reflected, as in the
// CRC: bit 31 is the coefficient of x^0. Internal linkage: see kernel_table.h.

namespace allring::kernels {

namespace {

/// Without its leading term x^32.
constexpr uint32_t kCastagnoli = 0x82f63b78u;

/// value * x.
constexpr uint32_t times_x(uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? kCastagnoli : 0);
}

/// x^power.
constexpr uint32_t x_to_the(size_t power) {
  uint32_t value = 0x80000000u;
  for (size_t i = 0; i < power; ++i) value = times_x(value);
  return value;
}

}  // namespace

/// By the crc32 and pclmulqdq instructions; not inverted at either end. x86-64 only.
uint32_t crc32c_sse42(uint32_t state, const void* data, size_t bytes);

}  // namespace allring::kernels
