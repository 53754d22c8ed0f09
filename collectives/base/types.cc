#include "collectives/base/types.h"

#include "collectives/base/check.h"

namespace allring {

namespace {

struct DataTypeRow {
  std::string_view name;
  std::size_t bytes;
};

constexpr DataTypeRow kDataTypes[kDataTypeCount] = {
    {"uint8", 1},   {"int8", 1},    {"uint16", 2},  {"int16", 2}, {"int32", 4},    {"int64", 8},
    {"float16", 2}, {"float32", 4}, {"float64", 8}, {"bool", 1},  {"bfloat16", 2},
};

constexpr std::string_view kReduceOps[] = {"average", "sum", "adasum", "min", "max", "product"};

const DataTypeRow& row(DataType dtype) {
  ALLRING_CHECK(is_data_type(static_cast<int>(dtype)), "not a DataType");
  return kDataTypes[static_cast<int>(dtype)];
}

}  // namespace

std::size_t element_bytes(DataType dtype) { return row(dtype).bytes; }
std::string_view data_type_name(DataType dtype) { return row(dtype).name; }
std::string_view reduce_op_name(ReduceOp op) {
  ALLRING_CHECK(is_reduce_op(static_cast<int>(op)), "not a ReduceOp");
  return kReduceOps[static_cast<int>(op)];
}
bool is_data_type(int value) { return value >= 0 && value < kDataTypeCount; }
bool is_reduce_op(int value) { return value >= 0 && value <= 5; }
bool is_floating(DataType dtype) {
  return is_half(dtype) || dtype == DataType::kFloat32 || dtype == DataType::kFloat64;
}
bool is_half(DataType dtype) { return dtype == DataType::kFloat16 || dtype == DataType::kBfloat16; }

}  // namespace allring
