// CRC-32C by the instructions of SSE 4.2. crc32 takes three cycles but can begin anew each cycle,
// so long data are cut in three and the three CRCs combined: Gopal et al., "Fast CRC computation
// for iSCSI polynomial using CRC32 instruction", Intel white paper 323405 (2011).
#include <nmmintrin.h>
#include <wmmintrin.h>

#include "collectives/kernels/crc32c_polynomial.h"

namespace allring::kernels {

namespace {

inline uint64_t word_at(const unsigned char* at) {
  uint64_t word;
  __builtin_memcpy(&word, at, sizeof(word));
  return word;
}

// The state after kBytes more bytes of zero: state * x^(8 kBytes). The carry-less product of two
// reflected values is one bit short, and crc32 multiplies by x^32 as it reduces, hence 33 less.
template <size_t kBytes>
inline uint64_t advance(uint64_t state) {
  constexpr uint32_t kFactor = x_to_the(8 * kBytes - 33);
  const __m128i product =
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(state)),
                           _mm_cvtsi64_si128(static_cast<long long>(kFactor)), 0);
  return _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(product)));
}

// Consumes multiples of three times kBytes.
template <size_t kBytes>
inline uint64_t three_at_once(uint64_t state, const unsigned char** data, size_t* bytes) {
  const unsigned char* at = *data;
  for (; *bytes >= 3 * kBytes; *bytes -= 3 * kBytes, at += 3 * kBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kBytes; i += 8) {
      state = _mm_crc32_u64(state, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + kBytes + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * kBytes + i));
    }
    state = advance<2 * kBytes>(state) ^ advance<kBytes>(second) ^ third;
  }
  *data = at;
  return state;
}

}  // namespace

uint32_t crc32c_sse42(uint32_t state, const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t wide = state;
  wide = three_at_once<2048>(wide, &at, &bytes);
  wide = three_at_once<128>(wide, &at, &bytes);
  for (; bytes >= 8; bytes -= 8, at += 8) wide = _mm_crc32_u64(wide, word_at(at));
  auto narrow = static_cast<uint32_t>(wide);
  for (; bytes > 0; --bytes, ++at) narrow = _mm_crc32_u8(narrow, *at);
  return narrow;
}

}  // namespace allring::kernels
