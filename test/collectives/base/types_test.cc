#include "collectives/base/types.h"

#include <catch2/catch.hpp>
#include <string>

namespace allring {
namespace {

struct Expected {
  DataType dtype;
  int value;
  const char* name;
  std::size_t bytes;
  bool floating;
};

// The values are Horovod's, and part of the C ABI and of the wire format.
constexpr Expected kTypes[] = {
    {DataType::kUint8, 0, "uint8", 1, false},       {DataType::kInt8, 1, "int8", 1, false},
    {DataType::kUint16, 2, "uint16", 2, false},     {DataType::kInt16, 3, "int16", 2, false},
    {DataType::kInt32, 4, "int32", 4, false},       {DataType::kInt64, 5, "int64", 8, false},
    {DataType::kFloat16, 6, "float16", 2, true},    {DataType::kFloat32, 7, "float32", 4, true},
    {DataType::kFloat64, 8, "float64", 8, true},    {DataType::kBool, 9, "bool", 1, false},
    {DataType::kBfloat16, 10, "bfloat16", 2, true},
};

TEST_CASE("every dtype has its value, name and size") {
  REQUIRE(std::size(kTypes) == kDataTypeCount);
  for (const Expected& expected : kTypes) {
    CAPTURE(expected.name);
    REQUIRE(static_cast<int>(expected.dtype) == expected.value);
    REQUIRE(data_type_name(expected.dtype) == expected.name);
    REQUIRE(element_bytes(expected.dtype) == expected.bytes);
    REQUIRE(is_floating(expected.dtype) == expected.floating);
    REQUIRE(is_half(expected.dtype) == (expected.floating && expected.bytes == 2));
  }
}

TEST_CASE("numbers from outside are checked") {
  REQUIRE_FALSE(is_data_type(-1));
  REQUIRE(is_data_type(0));
  REQUIRE(is_data_type(10));
  REQUIRE_FALSE(is_data_type(11));
  REQUIRE_FALSE(is_reduce_op(-1));
  REQUIRE(is_reduce_op(0));
  REQUIRE(is_reduce_op(5));
  REQUIRE_FALSE(is_reduce_op(6));
}

TEST_CASE("every op has its value and name") {
  const ReduceOp ops[] = {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kAdasum,
                          ReduceOp::kMin,     ReduceOp::kMax, ReduceOp::kProduct};
  const char* const names[] = {"average", "sum", "adasum", "min", "max", "product"};
  for (int i = 0; i < 6; ++i) {
    REQUIRE(static_cast<int>(ops[i]) == i);
    REQUIRE(reduce_op_name(ops[i]) == names[i]);
  }
}

}  // namespace
}  // namespace allring
