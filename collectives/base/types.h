#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace allring {

/// Position of a process in its group, 0 .. size-1.
using Rank = int;

/// Element types. The values are part of the C ABI and of the wire format.
enum class DataType : std::uint8_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBool = 9,
  kBfloat16 = 10,
};
inline constexpr int kDataTypeCount = 11;

/// Reductions. The values are Horovod's and part of the C ABI and of the wire format.
/// On bool: kSum and kMax are "or", kProduct and kMin are "and"; kAverage is refused.
enum class ReduceOp : std::uint8_t {
  kAverage = 0,
  kSum = 1,
  kAdasum = 2,
  kMin = 3,
  kMax = 4,
  kProduct = 5,
};

/// Bytes of one element.
std::size_t element_bytes(DataType dtype);
/// "float32", as in numpy and torch.
std::string_view data_type_name(DataType dtype);
/// "sum", "average", ...
std::string_view reduce_op_name(ReduceOp op);
/// False for numbers that are no DataType (they may come from the wire or the C ABI).
bool is_data_type(int value);
bool is_reduce_op(int value);
/// float16, bfloat16, float32, float64.
bool is_floating(DataType dtype);
/// float16 or bfloat16: sums of these accumulate in float32 and round once.
bool is_half(DataType dtype);

}  // namespace allring
