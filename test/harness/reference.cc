#include "test/harness/reference.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "collectives/base/check.h"
#include "test/collectives/kernels/reference.h"

namespace allring::test {

namespace {

template <typename T>
T load(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}

std::int64_t load_integer(const std::byte* element, DataType dtype) {
  switch (dtype) {
    case DataType::kUint8:
      return load<std::uint8_t>(element);
    case DataType::kInt8:
      return load<std::int8_t>(element);
    case DataType::kUint16:
      return load<std::uint16_t>(element);
    case DataType::kInt16:
      return load<std::int16_t>(element);
    case DataType::kInt32:
      return load<std::int32_t>(element);
    case DataType::kInt64:
      return load<std::int64_t>(element);
    case DataType::kBool:
      return load<std::uint8_t>(element) != 0;
    default:
      ALLRING_CHECK(false, "not an integer");
  }
}

std::int64_t wrap(std::int64_t value, DataType dtype) {
  std::byte element[8];
  std::memcpy(element, &value, 8);  // little endian: the low bytes
  return load_integer(element, dtype);
}

double load_real(const std::byte* element, DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return load<float>(element);
    case DataType::kFloat64:
      return load<double>(element);
    default:
      return half_value(load<std::uint16_t>(element), dtype);
  }
}

/// Half a unit in the last place of `value`: what one rounding may change.
double half_ulp(double value, DataType dtype) {
  int precision = 53, lowest = -1074;
  if (dtype == DataType::kFloat32) precision = 24, lowest = -149;
  if (dtype == DataType::kFloat16) precision = 11, lowest = -24;
  if (dtype == DataType::kBfloat16) precision = 8, lowest = -133;
  if (value == 0) return std::ldexp(0.5, lowest);
  return std::ldexp(0.5, std::max(std::ilogb(value) + 1 - precision, lowest));
}

std::int64_t combine(std::int64_t a, std::int64_t b, ReduceOp op, DataType dtype) {
  const auto unsigned_a = static_cast<std::uint64_t>(a), unsigned_b = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kProduct:
      return wrap(static_cast<std::int64_t>(unsigned_a * unsigned_b), dtype);
    default:
      if (dtype == DataType::kBool) return a | b;
      return wrap(static_cast<std::int64_t>(unsigned_a + unsigned_b), dtype);
  }
}

}  // namespace

std::vector<std::byte> tame_elements(DataType dtype, std::size_t count, Rank rank,
                                     std::uint64_t seed) {
  std::mt19937_64 random(seed * 1000003 + rank * 101 + static_cast<int>(dtype));
  const std::size_t bytes = element_bytes(dtype);
  std::vector<std::byte> result(count * bytes);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    const double real = std::ldexp(static_cast<double>(bits >> 11), -53) * 4 - 2;
    std::byte* element = result.data() + i * bytes;
    if (dtype == DataType::kFloat32) {
      const float value = static_cast<float>(real);
      std::memcpy(element, &value, bytes);
    } else if (dtype == DataType::kFloat64) {
      std::memcpy(element, &real, bytes);
    } else if (is_half(dtype)) {
      const std::uint16_t value = nearest_half(static_cast<float>(real), dtype);
      std::memcpy(element, &value, bytes);
    } else if (dtype == DataType::kBool) {
      const std::uint8_t value = bits % 4 == 0;
      std::memcpy(element, &value, bytes);
    } else {
      // Sums of 8 bits wrap now and then.
      const auto value = static_cast<std::int64_t>(bits % 101) - 50;
      std::memcpy(element, &value, bytes);
    }
  }
  return result;
}

Expected::Expected(const std::vector<std::vector<std::byte>>& inputs, DataType dtype, ReduceOp op,
                   double postscale)
    : dtype_(dtype) {
  const std::size_t bytes = element_bytes(dtype);
  const std::size_t count = inputs[0].size() / bytes;
  const double size = static_cast<double>(inputs.size());
  if (!is_floating(dtype)) {
    exact_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t total = load_integer(inputs[0].data() + i * bytes, dtype);
      for (std::size_t rank = 1; rank < inputs.size(); ++rank)
        total = combine(total, load_integer(inputs[rank].data() + i * bytes, dtype), op, dtype);
      if (op == ReduceOp::kAverage) total /= static_cast<std::int64_t>(inputs.size());
      if (postscale != 1.0 && dtype != DataType::kBool)
        total = static_cast<std::int64_t>(static_cast<double>(total) * postscale);
      exact_[i] = total;
    }
    return;
  }

  value_.resize(count);
  slack_.resize(count);
  const double scale = op == ReduceOp::kAverage ? postscale / size : postscale;
  // Where 16-bit floats accumulate, too.
  const double epsilon = dtype == DataType::kFloat64 ? std::numeric_limits<double>::epsilon()
                                                     : std::numeric_limits<float>::epsilon();
  for (std::size_t i = 0; i < count; ++i) {
    long double total = load_real(inputs[0].data() + i * bytes, dtype);
    long double magnitude = std::fabs(total);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      const long double next = load_real(inputs[rank].data() + i * bytes, dtype);
      switch (op) {
        case ReduceOp::kMin:
          total = std::min(total, next);
          break;
        case ReduceOp::kMax:
          total = std::max(total, next);
          break;
        case ReduceOp::kProduct:
          total *= next;
          break;
        default:
          total += next;
      }
      magnitude = op == ReduceOp::kProduct ? std::fabs(total) : magnitude + std::fabs(next);
    }
    const bool exact = op == ReduceOp::kMin || op == ReduceOp::kMax;
    value_[i] = static_cast<double>(total * scale);
    slack_[i] = exact && scale == 1.0
                    ? 0
                    : half_ulp(value_[i], dtype) +
                          size * epsilon * std::fabs(static_cast<double>(magnitude * scale));
  }
}

std::string Expected::compare(const std::byte* got, std::size_t first, std::size_t count) const {
  const std::size_t bytes = element_bytes(dtype_);
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* element = got + i * bytes;
    if (!is_floating(dtype_)) {
      if (const std::int64_t value = load_integer(element, dtype_); value != exact_[first + i]) {
        return "element " + std::to_string(i) + " is " + std::to_string(value) + ", expected " +
               std::to_string(exact_[first + i]);
      }
      continue;
    }
    const double value = load_real(element, dtype_);
    if (!(std::fabs(value - value_[first + i]) <= slack_[first + i])) {
      char text[128];
      std::snprintf(text, sizeof text, "element %zu is %.17g, expected %.17g within %.3g", i, value,
                    value_[first + i], slack_[first + i]);
      return text;
    }
  }
  return {};
}

}  // namespace allring::test
