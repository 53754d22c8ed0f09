#include "test/collectives/kernels/reference.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace allring::test {

namespace {

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
T truncate_to(double value) {
  if (std::isnan(value)) return 0;
  const long double whole = std::trunc(static_cast<long double>(value));
  if (whole > static_cast<long double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  if (whole < static_cast<long double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(whole);
}

template <class T>
void reduce_integers(const std::vector<const std::byte*>& sources, const Reduction& reduction,
                     std::byte* result) {
  T total = read<T>(sources[0]);
  for (std::size_t k = 1; k < sources.size(); ++k) {
    const auto a = static_cast<__int128>(total);
    const auto b = static_cast<__int128>(read<T>(sources[k]));
    switch (reduction.op) {
      case ReduceOp::kSum:
        total = static_cast<T>(a + b);
        break;
      case ReduceOp::kMin:
        total = static_cast<T>(a < b ? a : b);
        break;
      case ReduceOp::kMax:
        total = static_cast<T>(a > b ? a : b);
        break;
      default:
        // The low bits of the product, which may exceed __int128's positive range.
        total =
            static_cast<T>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
    }
  }
  total = static_cast<T>(static_cast<__int128>(total) / reduction.divisor);
  if (reduction.scale != 1.0) {
    total = truncate_to<T>(static_cast<double>(total) * reduction.scale);
  }
  std::memcpy(result, &total, sizeof(T));
}

template <class T>
T combine(T a, T b, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kMin:
      return std::isnan(a) || a < b ? a : b;
    case ReduceOp::kMax:
      return std::isnan(a) || a > b ? a : b;
    default:
      return a * b;
  }
}

template <class T>
void reduce_floats(const std::vector<const std::byte*>& sources, const Reduction& reduction,
                   std::byte* result) {
  T total = read<T>(sources[0]);
  for (std::size_t k = 1; k < sources.size(); ++k) {
    total = combine(total, read<T>(sources[k]), reduction.op);
  }
  if (reduction.scale != 1.0) total *= static_cast<T>(reduction.scale);
  std::memcpy(result, &total, sizeof(T));
}

void reduce_halves(const std::vector<const std::byte*>& sources, const Reduction& reduction,
                   std::byte* result) {
  const auto value = [&](std::size_t k) {
    return half_value(read<std::uint16_t>(sources[k]), reduction.dtype);
  };
  float total = value(0);
  for (std::size_t k = 1; k < sources.size(); ++k) total = combine(total, value(k), reduction.op);
  if (reduction.scale != 1.0) total *= static_cast<float>(reduction.scale);
  const std::uint16_t half = nearest_half(total, reduction.dtype);
  std::memcpy(result, &half, sizeof(half));
}

void reduce_bools(const std::vector<const std::byte*>& sources, const Reduction& reduction,
                  std::byte* result) {
  std::size_t truths = 0;
  for (const std::byte* source : sources) truths += *source != std::byte{0} ? 1 : 0;
  const bool any = reduction.op == ReduceOp::kSum || reduction.op == ReduceOp::kMax;
  *result = std::byte{any ? truths > 0 : truths == sources.size()};
}

// Bits of exponent and fraction.
struct Format {
  int exponent;
  int fraction;
};
Format format_of(DataType dtype) {
  return dtype == DataType::kFloat16 ? Format{5, 10} : Format{8, 7};
}

template <class T>
std::vector<std::byte> mixed(std::size_t count, std::uint64_t seed, const std::vector<T>& specials,
                             T (*ordinary)(std::mt19937_64&)) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    const T value = random() % 8 == 0 ? specials[random() % specials.size()] : ordinary(random);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

template <class T>
std::vector<std::byte> integers(std::size_t count, std::uint64_t seed) {
  using Limits = std::numeric_limits<T>;
  return mixed<T>(count, seed,
                  {T{0}, T{1}, static_cast<T>(-1), Limits::min(), Limits::max(),
                   static_cast<T>(Limits::min() + 1), static_cast<T>(Limits::max() - 1)},
                  [](std::mt19937_64& random) {
                    // Small and large ones alike.
                    return static_cast<T>(static_cast<std::int64_t>(random()) >> (random() % 64));
                  });
}

template <class T>
std::vector<std::byte> floats(std::size_t count, std::uint64_t seed) {
  using Limits = std::numeric_limits<T>;
  return mixed<T>(count, seed,
                  {T{0}, -T{0}, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(),
                   -Limits::quiet_NaN(), Limits::max(), Limits::lowest(), Limits::min(),
                   Limits::denorm_min(), -Limits::denorm_min(), Limits::min() / 3},
                  [](std::mt19937_64& random) {
                    return static_cast<T>(std::normal_distribution<double>(0, 3)(random));
                  });
}

std::vector<std::byte> halves(std::size_t count, std::uint64_t seed, DataType dtype) {
  const Format format = format_of(dtype);
  const auto infinity = static_cast<std::uint16_t>(((1 << format.exponent) - 1) << format.fraction);
  std::vector<std::uint16_t> specials;
  for (const int magnitude :
       {0, 1, 2, 3, (1 << format.fraction) - 1, 1 << format.fraction, infinity - 1, infinity - 2,
        int{infinity}, infinity + 1, infinity + (1 << (format.fraction - 1)), 0x7fff}) {
    specials.push_back(static_cast<std::uint16_t>(magnitude));
    specials.push_back(static_cast<std::uint16_t>(magnitude | 0x8000));
  }
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count * 2);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t half =
        random() % 8 == 0 ? specials[random() % specials.size()]
                          : nearest_half(std::normal_distribution<float>(0, 3)(random), dtype);
    std::memcpy(bytes.data() + i * 2, &half, 2);
  }
  return bytes;
}

}  // namespace

void reference_reduce(const std::vector<const std::byte*>& sources, const Reduction& reduction,
                      std::byte* result) {
  switch (reduction.dtype) {
    case DataType::kUint8:
      return reduce_integers<std::uint8_t>(sources, reduction, result);
    case DataType::kInt8:
      return reduce_integers<std::int8_t>(sources, reduction, result);
    case DataType::kUint16:
      return reduce_integers<std::uint16_t>(sources, reduction, result);
    case DataType::kInt16:
      return reduce_integers<std::int16_t>(sources, reduction, result);
    case DataType::kInt32:
      return reduce_integers<std::int32_t>(sources, reduction, result);
    case DataType::kInt64:
      return reduce_integers<std::int64_t>(sources, reduction, result);
    case DataType::kFloat32:
      return reduce_floats<float>(sources, reduction, result);
    case DataType::kFloat64:
      return reduce_floats<double>(sources, reduction, result);
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return reduce_halves(sources, reduction, result);
    case DataType::kBool:
      return reduce_bools(sources, reduction, result);
  }
}

float half_value(std::uint16_t half, DataType dtype) {
  const Format format = format_of(dtype);
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int exponent = (half & 0x7fff) >> format.fraction;
  const int fraction = half & ((1 << format.fraction) - 1);
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == (1 << format.exponent) - 1) {
    return std::copysign(fraction == 0 ? INFINITY : NAN, sign);
  }
  const int whole = exponent == 0 ? fraction : fraction + (1 << format.fraction);
  return sign *
         static_cast<float>(std::ldexp(static_cast<double>(whole),
                                       (exponent == 0 ? 1 : exponent) - bias - format.fraction));
}

std::uint16_t nearest_half(float value, DataType dtype) {
  const Format format = format_of(dtype);
  const int bias = (1 << (format.exponent - 1)) - 1;
  const int infinity = ((1 << format.exponent) - 1) << format.fraction;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | infinity | (1 << (format.fraction - 1)));
  }
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  const long double magnitude = std::fabs(static_cast<long double>(value));
  int exponent = magnitude == 0 ? 1 - bias : std::ilogb(magnitude);
  if (exponent < 1 - bias) exponent = 1 - bias;
  // In units of the last place; nearbyint rounds ties to even. What rounds up to the next exponent,
  // or from denormal to normal, comes out right by the carry.
  const auto units =
      static_cast<long>(std::nearbyint(std::ldexp(magnitude, format.fraction - exponent)));
  const long bits = ((static_cast<long>(exponent + bias) - 1) << format.fraction) + units;
  return static_cast<std::uint16_t>(sign | (bits > infinity ? infinity : bits));
}

bool same_element(const std::byte* a, const std::byte* b, DataType dtype) {
  if (std::memcmp(a, b, element_bytes(dtype)) == 0) return true;
  if (dtype == DataType::kFloat32) {
    return std::isnan(read<float>(a)) && std::isnan(read<float>(b));
  }
  if (dtype == DataType::kFloat64) {
    return std::isnan(read<double>(a)) && std::isnan(read<double>(b));
  }
  if (is_half(dtype)) {
    return std::isnan(half_value(read<std::uint16_t>(a), dtype)) &&
           std::isnan(half_value(read<std::uint16_t>(b), dtype));
  }
  return false;
}

std::vector<std::byte> random_elements(DataType dtype, std::size_t count, std::uint64_t seed) {
  switch (dtype) {
    case DataType::kUint8:
      return integers<std::uint8_t>(count, seed);
    case DataType::kInt8:
      return integers<std::int8_t>(count, seed);
    case DataType::kUint16:
      return integers<std::uint16_t>(count, seed);
    case DataType::kInt16:
      return integers<std::int16_t>(count, seed);
    case DataType::kInt32:
      return integers<std::int32_t>(count, seed);
    case DataType::kInt64:
      return integers<std::int64_t>(count, seed);
    case DataType::kFloat32:
      return floats<float>(count, seed);
    case DataType::kFloat64:
      return floats<double>(count, seed);
    case DataType::kBool:
      return mixed<std::uint8_t>(count, seed, {0, 1, 2, 128, 255}, [](std::mt19937_64& random) {
        return static_cast<std::uint8_t>(random() % 2);
      });
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return halves(count, seed, dtype);
  }
  return {};
}

std::string hex(const std::byte* element, DataType dtype) {
  std::string text = "0x";
  for (std::size_t i = element_bytes(dtype); i-- > 0;) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = std::to_integer<unsigned>(element[i]);
    text += kDigits[byte / 16];
    text += kDigits[byte % 16];
  }
  return text;
}

std::vector<std::string> available_simd() {
  std::vector<std::string> names{"scalar"};
  if (best_simd() >= Simd::kAvx2) names.push_back("avx2");
  if (best_simd() >= Simd::kAvx512) names.push_back("avx512");
  return names;
}

SimdGuard::SimdGuard(const std::string& name) { REQUIRE(set_simd(name).ok()); }
SimdGuard::~SimdGuard() { (void)set_simd("auto").ok(); }

}  // namespace allring::test
