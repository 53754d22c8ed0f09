// Conversions of 16-bit floats, all 65536 of them and every float32 near a rounding boundary.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "collectives/kernels/reduce.h"
#include "test/collectives/kernels/reference.h"

namespace allring {
namespace {

using test::half_value;
using test::nearest_half;
using test::SimdGuard;

void widen(std::vector<float>* dst, const std::vector<std::uint16_t>& src, DataType dtype) {
  dst->resize(src.size());
  dtype == DataType::kFloat16 ? float16_to_float32(dst->data(), src.data(), src.size())
                              : bfloat16_to_float32(dst->data(), src.data(), src.size());
}

void narrow(std::vector<std::uint16_t>* dst, const std::vector<float>& src, DataType dtype) {
  dst->resize(src.size());
  dtype == DataType::kFloat16 ? float32_to_float16(dst->data(), src.data(), src.size())
                              : float32_to_bfloat16(dst->data(), src.data(), src.size());
}

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  return halves;
}

TEST_CASE("every 16-bit float widens to its value and narrows back to itself") {
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    const auto halves = all_halves();
    std::vector<std::uint32_t> scalar_bits;
    for (const std::string& simd : test::available_simd()) {
      const SimdGuard guard(simd);
      std::vector<float> wide;
      std::vector<std::uint16_t> back;
      widen(&wide, halves, dtype);
      narrow(&back, wide, dtype);
      std::vector<std::uint32_t> bits;
      for (std::size_t i = 0; i < halves.size(); ++i) {
        const float expected = half_value(halves[i], dtype);
        bits.push_back(std::bit_cast<std::uint32_t>(wide[i]));
        const bool right = std::isnan(expected)
                               ? std::isnan(wide[i]) && std::signbit(wide[i]) == (i >= 0x8000)
                               : bits.back() == std::bit_cast<std::uint32_t>(expected);
        const bool same = std::isnan(expected) ? std::isnan(half_value(back[i], dtype)) &&
                                                     (back[i] | 0x240) == (i | 0x240)
                                               : back[i] == i;
        if (!right || !same) FAIL(data_type_name(dtype) << " " << simd << " " << i);
      }
      // NaNs, too, are the same bits whatever the instruction set.
      if (scalar_bits.empty()) scalar_bits = bits;
      REQUIRE(bits == scalar_bits);
    }
  }
}

// All neighbours of a 16-bit float and of the points halfway to the next, and random bits.
std::vector<float> near_boundaries(DataType dtype, std::uint64_t seed) {
  std::vector<float> values;
  for (const std::uint16_t half : all_halves()) {
    const float value = half_value(half, dtype);
    const float next = half_value(static_cast<std::uint16_t>(half + 1), dtype);
    const float middle = static_cast<float>((double{value} + double{next}) / 2);
    for (const float center : {value, middle}) {
      values.push_back(center);
      values.push_back(std::nextafter(center, INFINITY));
      values.push_back(std::nextafter(center, -INFINITY));
    }
  }
  // Where float16 overflows: 65520 is the first that rounds to infinity.
  for (const float value : {65503.996f, 65504.0f, 65519.996f, 65520.0f, 65536.0f, 3.4e38f}) {
    values.push_back(value);
    values.push_back(-value);
  }
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200003; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  return values;
}

TEST_CASE("float32 narrows to the nearest 16-bit float, ties to even") {
  const std::uint64_t seed = Catch::rngSeed();
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    const std::vector<float> values = near_boundaries(dtype, seed);
    std::vector<std::uint16_t> scalar;
    for (const std::string& simd : test::available_simd()) {
      const SimdGuard guard(simd);
      std::vector<std::uint16_t> got;
      narrow(&got, values, dtype);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool right = std::isnan(values[i]) ? std::isnan(half_value(got[i], dtype)) &&
                                                       std::signbit(values[i]) == (got[i] >= 0x8000)
                                                 : got[i] == nearest_half(values[i], dtype);
        if (!right) {
          FAIL(data_type_name(dtype) << " " << simd << " " << values[i] << ": expected "
                                     << nearest_half(values[i], dtype) << ", got " << got[i]);
        }
      }
      if (scalar.empty()) scalar = got;
      REQUIRE(got == scalar);
    }
  }
}

TEST_CASE("conversions touch exactly the elements they are given") {
  for (const std::string& simd : test::available_simd()) {
    const SimdGuard guard(simd);
    for (std::size_t count = 0; count <= 70; ++count) {
      std::vector<std::uint16_t> half(count + 2, 0x4000);
      std::vector<float> wide(count + 2, -1.0f);
      for (const bool float16 : {true, false}) {
        std::fill(wide.begin(), wide.end(), -1.0f);
        float16 ? float16_to_float32(wide.data() + 1, half.data() + 1, count)
                : bfloat16_to_float32(wide.data() + 1, half.data() + 1, count);
        CAPTURE(simd, count, float16);
        REQUIRE(wide.front() == -1.0f);
        REQUIRE(wide.back() == -1.0f);
        REQUIRE(std::count(wide.begin(), wide.end(), 2.0f) == static_cast<std::ptrdiff_t>(count));
        std::vector<std::uint16_t> back(count + 2, 7);
        float16 ? float32_to_float16(back.data() + 1, wide.data() + 1, count)
                : float32_to_bfloat16(back.data() + 1, wide.data() + 1, count);
        REQUIRE(back.front() == 7);
        REQUIRE(back.back() == 7);
        REQUIRE(std::count(back.begin(), back.end(), 0x4000) == static_cast<std::ptrdiff_t>(count));
      }
    }
  }
}

}  // namespace
}  // namespace allring
