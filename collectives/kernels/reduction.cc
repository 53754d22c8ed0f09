#include <string>

#include "collectives/kernels/reduce.h"

namespace allring {

Result<Reduction> Reduction::resolve(DataType dtype, ReduceOp op, int size, double postscale) {
  ALLRING_CHECK(size >= 1, "a reduction is over one rank at least");
  Reduction reduction{dtype, op, postscale, 1};
  if (op == ReduceOp::kAdasum) {
    return Status::invalid_argument(
        "adasum is not an element-wise reduction: expected sum, average, min, max or product");
  }
  if (op == ReduceOp::kAverage) {
    if (dtype == DataType::kBool) {
      return Status::invalid_argument(
          "average of bool: expected sum, min, max or product (logical or, and), or a cast first");
    }
    reduction.op = ReduceOp::kSum;
    if (is_floating(dtype)) {
      reduction.scale = postscale / size;
    } else {
      reduction.divisor = size;
    }
  }
  // Scaling leaves truth values as they are; see scale().
  if (dtype == DataType::kBool) reduction.scale = 1.0;
  return reduction;
}

}  // namespace allring
