#include "benchmarks/bench/pattern.h"

#include <algorithm>
#include <cstring>

#include "collectives/kernels/reduce.h"

namespace allring::bench {

namespace {

template <typename T>
void store_as(void* memory, std::size_t index, double value) {
  static_cast<T*>(memory)[index] = static_cast<T>(value);
}
template <typename T>
double load_as(const void* memory, std::size_t index) {
  return static_cast<double>(static_cast<const T*>(memory)[index]);
}

void store(DataType dtype, void* memory, std::size_t index, double value) {
  const float narrow = static_cast<float>(value);
  auto* half = static_cast<std::uint16_t*>(memory) + index;
  switch (dtype) {
    case DataType::kUint8:
    case DataType::kBool:
      return store_as<std::uint8_t>(memory, index, value);
    case DataType::kInt8:
      return store_as<std::int8_t>(memory, index, value);
    case DataType::kUint16:
      return store_as<std::uint16_t>(memory, index, value);
    case DataType::kInt16:
      return store_as<std::int16_t>(memory, index, value);
    case DataType::kInt32:
      return store_as<std::int32_t>(memory, index, value);
    case DataType::kInt64:
      return store_as<std::int64_t>(memory, index, value);
    case DataType::kFloat16:
      return float32_to_float16(half, &narrow, 1);
    case DataType::kBfloat16:
      return float32_to_bfloat16(half, &narrow, 1);
    case DataType::kFloat32:
      return store_as<float>(memory, index, value);
    case DataType::kFloat64:
      return store_as<double>(memory, index, value);
  }
}

double load(DataType dtype, const void* memory, std::size_t index) {
  float wide = 0;
  const auto* half = static_cast<const std::uint16_t*>(memory) + index;
  switch (dtype) {
    case DataType::kUint8:
    case DataType::kBool:
      return load_as<std::uint8_t>(memory, index);
    case DataType::kInt8:
      return load_as<std::int8_t>(memory, index);
    case DataType::kUint16:
      return load_as<std::uint16_t>(memory, index);
    case DataType::kInt16:
      return load_as<std::int16_t>(memory, index);
    case DataType::kInt32:
      return load_as<std::int32_t>(memory, index);
    case DataType::kInt64:
      return load_as<std::int64_t>(memory, index);
    case DataType::kFloat16:
      float16_to_float32(&wide, half, 1);
      return wide;
    case DataType::kBfloat16:
      bfloat16_to_float32(&wide, half, 1);
      return wide;
    case DataType::kFloat32:
      return load_as<float>(memory, index);
    case DataType::kFloat64:
      return load_as<double>(memory, index);
  }
  return 0;
}

/// The pattern repeats with the element's place in period kPeriod, so a big buffer is filled by
/// copying.
constexpr std::size_t kPeriod = 7;

double reduced_value(const Call& call, int size, std::size_t index) {
  double value = input_value(call.op, 0, index);
  for (Rank rank = 1; rank < size; ++rank) {
    const double other = input_value(call.op, rank, index);
    switch (call.op) {
      case ReduceOp::kMin:
        value = std::min(value, other);
        break;
      case ReduceOp::kMax:
        value = std::max(value, other);
        break;
      case ReduceOp::kProduct:
        value *= other;
        break;
      default:
        value += other;
    }
  }
  return value;
}

double expected_value(const Call& call, Rank rank, int size, std::size_t index) {
  const std::size_t part = std::max<std::size_t>(call.count / static_cast<std::size_t>(size), 1);
  switch (call.kind) {
    case CollectiveKind::kAllreduce:
      return reduced_value(call, size, index);
    case CollectiveKind::kReduceScatter:
      return reduced_value(call, size, index + static_cast<std::size_t>(rank) * part);
    case CollectiveKind::kAllgather:
      return input_value(call.op, static_cast<Rank>(index / part), index % part);
    case CollectiveKind::kBroadcast:
      return input_value(call.op, call.root, index);
    case CollectiveKind::kAlltoall:
      return input_value(call.op, static_cast<Rank>(index / part),
                         static_cast<std::size_t>(rank) * part + index % part);
    case CollectiveKind::kBarrier:
      return 0;
  }
  return 0;
}

/// A sum of whole numbers is exact; only their average may be rounded, and only once.
bool equals(const Call& call, int size, double got, double expected) {
  if (call.op != ReduceOp::kAverage ||
      (call.kind != CollectiveKind::kAllreduce && call.kind != CollectiveKind::kReduceScatter))
    return got == expected;
  const double average = expected / size;
  if (!is_floating(call.dtype))
    return got == static_cast<double>(static_cast<std::int64_t>(average));
  const double unit = call.dtype == DataType::kBfloat16  ? 1.0 / 256
                      : call.dtype == DataType::kFloat16 ? 1.0 / 2048
                                                         : 1e-6;
  return got >= average - unit * average && got <= average + unit * average;
}

}  // namespace

double input_value(ReduceOp op, Rank rank, std::size_t index) {
  const std::size_t place = index % kPeriod;
  if (op == ReduceOp::kProduct) return place == static_cast<std::size_t>(rank) % kPeriod ? 2 : 1;
  return static_cast<double>(place) + (rank % 5);
}

void fill_input(const Call& call, Rank rank, int size, void* input) {
  const std::size_t count = input_count(call, size);
  const std::size_t bytes = element_bytes(call.dtype);
  const std::size_t first = std::min(count, kPeriod * 64);
  for (std::size_t i = 0; i < first; ++i)
    store(call.dtype, input, i, input_value(call.op, rank, i));
  auto* memory = static_cast<char*>(input);
  for (std::size_t done = first; done < count;) {
    const std::size_t more = std::min(count - done, first);
    std::memcpy(memory + done * bytes, memory, more * bytes);
    done += more;
  }
}

std::size_t count_wrong(const Call& call, Rank rank, int size) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < output_count(call, size); ++i) {
    const double got = load(call.dtype, call.output, i);
    wrong += !equals(call, size, got, expected_value(call, rank, size, i));
  }
  return wrong;
}

std::size_t input_count(const Call& call, int size) {
  return call.kind == CollectiveKind::kAllgather ? call.count / static_cast<std::size_t>(size)
                                                 : call.count;
}

std::size_t output_count(const Call& call, int size) {
  return call.kind == CollectiveKind::kReduceScatter ? call.count / static_cast<std::size_t>(size)
                                                     : call.count;
}

}  // namespace allring::bench
