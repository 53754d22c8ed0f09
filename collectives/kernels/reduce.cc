#include "collectives/kernels/reduce.h"

#include <cstring>

#include "collectives/kernels/kernel_table.h"

namespace allring {

namespace {

using kernels::current_kernels;
using kernels::Finish;

kernels::OpRow op_row(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return kernels::kSumRow;
    case ReduceOp::kMin:
      return kernels::kMinRow;
    case ReduceOp::kMax:
      return kernels::kMaxRow;
    case ReduceOp::kProduct:
      return kernels::kProductRow;
    case ReduceOp::kAverage:
    case ReduceOp::kAdasum:
      break;
  }
  check_failed(__FILE__, __LINE__, "op", "the op must be resolved: see Reduction::resolve");
}

}  // namespace

void reduce(std::span<void* const> dsts, std::span<const void* const> srcs, std::size_t count,
            const Reduction& reduction) {
  ALLRING_CHECK(!dsts.empty() && !srcs.empty(), "reduce needs a source and a destination");
  ALLRING_CHECK(is_data_type(static_cast<int>(reduction.dtype)), "not a DataType");
  ALLRING_CHECK(reduction.divisor >= 1, "the divisor is a number of ranks");
  ALLRING_CHECK(reduction.divisor == 1 || !is_floating(reduction.dtype),
                "floats are averaged by scale");
  const auto& table = current_kernels();
  const auto& kernel = reduction.finishing() ? table.finished : table.partial;
  kernel[static_cast<int>(reduction.dtype)][op_row(reduction.op)](
      dsts.data(), dsts.size(), srcs.data(), srcs.size(), count,
      Finish{reduction.scale, reduction.divisor});
}

void reduce2(void* dst, const void* a, const void* b, std::size_t count,
             const Reduction& reduction) {
  const void* srcs[] = {a, b};
  reduce({&dst, 1}, srcs, count, reduction);
}

void scale(void* dst, const void* src, std::size_t count, DataType dtype, double factor) {
  if (dtype == DataType::kBool || factor == 1.0) {
    if (dst != src && count != 0) std::memcpy(dst, src, count * element_bytes(dtype));
    return;
  }
  reduce({&dst, 1}, {&src, 1}, count, Reduction{dtype, ReduceOp::kSum, factor, 1});
}

}  // namespace allring
