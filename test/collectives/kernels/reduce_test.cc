#include "collectives/kernels/reduce.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <span>

#include "test/collectives/kernels/reference.h"

namespace allring {
namespace {

using test::SimdGuard;

constexpr std::size_t kCounts[] = {0, 1, 15, 16, 17, 63, 64, 65, 1000, 1003};
constexpr std::size_t kMostCount = 1003;
constexpr int kInputs[] = {1, 2, 3, 4, 5, 8};
constexpr int kFewInputs[] = {1, 2, 5};
constexpr int kMostInputs = 8;
constexpr int kMostOutputs = 3;
constexpr std::size_t kMargin = 64;

// A buffer at an odd place, between margins that must not change.
class Placed {
 public:
  explicit Placed(std::size_t shift) : shift_(shift), bytes_(kMostCount * 8 + 2 * kMargin + 8) {}
  std::byte* data() { return bytes_.data() + kMargin + shift_; }
  void clear() { std::fill(bytes_.begin(), bytes_.end(), std::byte{0xa5}); }
  bool margins_intact(std::size_t size) {
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      const bool inside = i >= kMargin + shift_ && i < kMargin + shift_ + size;
      if (!inside && bytes_[i] != std::byte{0xa5}) return false;
    }
    return true;
  }

 private:
  std::size_t shift_;
  std::vector<std::byte> bytes_;
};

struct Sources {
  Sources(DataType dtype, std::uint64_t seed) {
    for (int k = 0; k < kMostInputs; ++k) {
      // Each at another misalignment.
      place.emplace_back(static_cast<std::size_t>(k) % 5);
      const auto elements = test::random_elements(dtype, kMostCount, seed + k);
      std::memcpy(place.back().data(), elements.data(), elements.size());
    }
  }
  std::vector<const void*> first(int inputs) {
    std::vector<const void*> result;
    for (int k = 0; k < inputs; ++k) result.push_back(place[k].data());
    return result;
  }
  std::vector<Placed> place;
};

std::vector<std::byte> expected_result(const std::vector<const void*>& srcs,
                                       const Reduction& reduction) {
  const std::size_t size = element_bytes(reduction.dtype);
  std::vector<std::byte> result(kMostCount * size);
  std::vector<const std::byte*> element(srcs.size());
  for (std::size_t i = 0; i < kMostCount; ++i) {
    for (std::size_t k = 0; k < srcs.size(); ++k) {
      element[k] = static_cast<const std::byte*>(srcs[k]) + i * size;
    }
    test::reference_reduce(element, reduction, result.data() + i * size);
  }
  return result;
}

// Empty when the first `count` elements are as expected.
std::string difference(const std::byte* got, const std::byte* expected, std::size_t count,
                       DataType dtype) {
  const std::size_t size = element_bytes(dtype);
  if (std::memcmp(got, expected, count * size) == 0) return "";
  for (std::size_t i = 0; i < count; ++i) {
    if (!test::same_element(got + i * size, expected + i * size, dtype)) {
      return "element " + std::to_string(i) + ": expected " +
             test::hex(expected + i * size, dtype) + ", got " + test::hex(got + i * size, dtype);
    }
  }
  return "";
}

void check(const Reduction& reduction, Sources& sources, std::span<const int> inputs_to_try) {
  const std::size_t size = element_bytes(reduction.dtype);
  for (const int inputs : inputs_to_try) {
    const std::vector<const void*> srcs = sources.first(inputs);
    const std::vector<std::byte> expected = expected_result(srcs, reduction);
    for (const std::string& simd : test::available_simd()) {
      const SimdGuard guard(simd);
      for (int outputs = 1; outputs <= kMostOutputs; ++outputs) {
        std::vector<Placed> results;
        std::vector<void*> dsts;
        for (int k = 0; k < outputs; ++k) results.emplace_back(static_cast<std::size_t>(3 * k));
        for (Placed& result : results) dsts.push_back(result.data());
        for (const std::size_t count : kCounts) {
          for (Placed& result : results) result.clear();
          reduce(dsts, srcs, count, reduction);
          std::string problem;
          for (Placed& result : results) {
            if (!result.margins_intact(count * size)) problem = "wrote outside";
            const std::string found =
                difference(result.data(), expected.data(), count, reduction.dtype);
            if (!found.empty()) problem = found;
          }
          if (!problem.empty()) {
            FAIL(data_type_name(reduction.dtype)
                 << " " << reduce_op_name(reduction.op) << " " << simd << ", scale "
                 << reduction.scale << ", divisor " << reduction.divisor << ", " << inputs
                 << " inputs, " << outputs << " outputs, count " << count << ": " << problem);
          }
        }
      }
    }
  }
}

TEST_CASE("every dtype, op, instruction set, number of inputs and outputs and count") {
  const std::uint64_t seed = Catch::rngSeed();
  for (int dtype = 0; dtype < kDataTypeCount; ++dtype) {
    Sources sources(static_cast<DataType>(dtype), seed);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      check({static_cast<DataType>(dtype), op}, sources, kInputs);
    }
  }
  SUCCEED();
}

TEST_CASE("averages and scales of every dtype") {
  const std::uint64_t seed = Catch::rngSeed();
  for (int number = 0; number < kDataTypeCount; ++number) {
    const auto dtype = static_cast<DataType>(number);
    Sources sources(dtype, seed + 100);
    if (dtype == DataType::kBool) continue;
    for (const int ranks : {1, 3, 7, 100}) {
      check(Reduction::resolve(dtype, ReduceOp::kAverage, ranks, 1.0).value(), sources, kFewInputs);
    }
    check(Reduction::resolve(dtype, ReduceOp::kAverage, 3, 2.5).value(), sources, kFewInputs);
    for (const double scale : {0.1, -3.7, 0.0, 1e30, -1e300}) {
      check({dtype, ReduceOp::kSum, scale, 1}, sources, kFewInputs);
    }
    check({dtype, ReduceOp::kMin, 0.5, 1}, sources, kFewInputs);
    check({dtype, ReduceOp::kMax, NAN, 1}, sources, kFewInputs);
    check({dtype, ReduceOp::kProduct, INFINITY, 1}, sources, kFewInputs);
  }
  SUCCEED();
}

TEST_CASE("a destination may be any of the sources") {
  const std::uint64_t seed = Catch::rngSeed();
  for (int number = 0; number < kDataTypeCount; ++number) {
    const auto dtype = static_cast<DataType>(number);
    const Reduction reduction{dtype, ReduceOp::kSum};
    for (const std::string& simd : test::available_simd()) {
      const SimdGuard guard(simd);
      for (int inputs = 1; inputs <= 5; ++inputs) {
        for (int k = 0; k < inputs; ++k) {
          Sources sources(dtype, seed + 200);
          const auto srcs = sources.first(inputs);
          const auto expected = expected_result(srcs, reduction);
          void* dsts[] = {const_cast<void*>(srcs[k])};
          reduce(dsts, srcs, kMostCount, reduction);
          CAPTURE(number, simd, inputs, k);
          REQUIRE(difference(static_cast<std::byte*>(dsts[0]), expected.data(), kMostCount,
                             dtype) == "");
        }
      }
    }
  }
}

TEST_CASE("reduce2 is reduce of two") {
  float a[5] = {1, 2, 3, 4, 5};
  const float b[5] = {10, 20, 30, 40, 50};
  float sum[5];
  reduce2(sum, a, b, 5, {DataType::kFloat32, ReduceOp::kSum});
  REQUIRE(std::vector<float>(sum, sum + 5) == std::vector<float>{11, 22, 33, 44, 55});
  reduce2(a, a, b, 5, {DataType::kFloat32, ReduceOp::kSum, 0.5, 1});
  REQUIRE(std::vector<float>(a, a + 5) == std::vector<float>{5.5, 11, 16.5, 22, 27.5});
}

TEST_CASE("scale is one multiplication, in place or not") {
  const std::uint64_t seed = Catch::rngSeed();
  for (int number = 0; number < kDataTypeCount; ++number) {
    const auto dtype = static_cast<DataType>(number);
    const std::size_t size = element_bytes(dtype);
    for (const std::string& simd : test::available_simd()) {
      const SimdGuard guard(simd);
      for (const double factor : {1.0, 0.3, -2.0}) {
        Sources sources(dtype, seed + 300);
        const auto srcs = sources.first(1);
        auto expected = expected_result(srcs, {dtype, ReduceOp::kSum, factor, 1});
        // Without a multiplication there is nothing to do, not even to normalize.
        if (dtype == DataType::kBool || factor == 1.0) {
          std::memcpy(expected.data(), srcs[0], kMostCount * size);
        }
        Placed result(1);
        scale(result.data(), srcs[0], kMostCount, dtype, factor);
        CAPTURE(number, simd, factor);
        REQUIRE(difference(result.data(), expected.data(), kMostCount, dtype) == "");
        scale(const_cast<void*>(srcs[0]), srcs[0], kMostCount, dtype, factor);
        REQUIRE(difference(static_cast<const std::byte*>(srcs[0]), expected.data(), kMostCount,
                           dtype) == "");
      }
    }
  }
}

TEST_CASE("averages of int64 are exact where double is not") {
  constexpr std::int64_t kLargest = INT64_MAX, kSmallest = INT64_MIN;
  const std::vector<std::int64_t> totals = {
      kLargest, kLargest - 1, kSmallest, kSmallest + 1, (1LL << 53) + 1, -(1LL << 53) - 1, 7, -7};
  for (const std::string& simd : test::available_simd()) {
    const SimdGuard guard(simd);
    for (const std::int64_t divisor :
         {std::int64_t{2}, std::int64_t{3}, std::int64_t{7}, std::int64_t{1} << 40, kLargest}) {
      std::vector<std::int64_t> got(totals.size());
      void* dst = got.data();
      const void* src = totals.data();
      reduce({&dst, 1}, {&src, 1}, totals.size(), {DataType::kInt64, ReduceOp::kSum, 1.0, divisor});
      for (std::size_t i = 0; i < totals.size(); ++i) {
        CAPTURE(simd, totals[i], divisor);
        REQUIRE(got[i] == totals[i] / divisor);
      }
    }
  }
}

TEST_CASE("integers are divided first, exactly, then scaled, toward zero") {
  for (const std::string& simd : test::available_simd()) {
    const SimdGuard guard(simd);
    const std::int32_t a[] = {7, -7, 8, 0};
    std::int32_t result[4];
    reduce2(result, a, a, 4, {DataType::kInt32, ReduceOp::kSum, 1.5, 4});
    CAPTURE(simd);
    // 14/4 = 3 -> 4.5 -> 4; 16/4 = 4 -> 6.
    REQUIRE(std::vector<std::int32_t>(result, result + 4) ==
            std::vector<std::int32_t>{4, -4, 6, 0});
  }
}

TEST_CASE("a scaled integer that does not fit becomes the nearest that does, and NaN zero") {
  for (const std::string& simd : test::available_simd()) {
    const SimdGuard guard(simd);
    CAPTURE(simd);
    const std::int64_t wide[] = {INT64_MAX, INT64_MIN, 1, -1};
    std::int64_t got[4];
    scale(got, wide, 4, DataType::kInt64, 2.0);
    REQUIRE(std::vector<std::int64_t>(got, got + 4) ==
            std::vector<std::int64_t>{INT64_MAX, INT64_MIN, 2, -2});
    scale(got, wide, 4, DataType::kInt64, NAN);
    REQUIRE(std::vector<std::int64_t>(got, got + 4) == std::vector<std::int64_t>{0, 0, 0, 0});
    const std::uint8_t narrow[] = {0, 1, 200, 255};
    std::uint8_t small[4];
    scale(small, narrow, 4, DataType::kUint8, 1.5);
    REQUIRE(std::vector<int>(small, small + 4) == std::vector<int>{0, 1, 255, 255});
    scale(small, narrow, 4, DataType::kUint8, -1.0);
    REQUIRE(std::vector<int>(small, small + 4) == std::vector<int>{0, 0, 0, 0});
  }
}

TEST_CASE("a 16-bit sum is rounded once, not at each step") {
  for (const std::string& simd : test::available_simd()) {
    const SimdGuard guard(simd);
    CAPTURE(simd);
    // 2048 + 1 is halfway between float16's 2048 and 2050: rounded each time, it would stay 2048.
    const std::uint16_t large = test::nearest_half(2048, DataType::kFloat16);
    const std::uint16_t one = test::nearest_half(1, DataType::kFloat16);
    const std::uint16_t values[] = {large, one, one, one};
    std::vector<const void*> srcs;
    for (const std::uint16_t& value : values) srcs.push_back(&value);
    std::uint16_t sum = 0;
    void* dst = &sum;
    reduce({&dst, 1}, srcs, 1, {DataType::kFloat16, ReduceOp::kSum});
    REQUIRE(test::half_value(sum, DataType::kFloat16) == 2052);
    // The scale comes before the rounding, too: 60000 + 60000 would overflow.
    const std::uint16_t big = test::nearest_half(60000, DataType::kFloat16);
    reduce2(&sum, &big, &big, 1, {DataType::kFloat16, ReduceOp::kSum, 0.5, 1});
    REQUIRE(test::half_value(sum, DataType::kFloat16) == 60000);
  }
}

}  // namespace
}  // namespace allring
