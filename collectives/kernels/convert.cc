#include "collectives/kernels/kernel_table.h"
#include "collectives/kernels/reduce.h"

namespace allring {

void float16_to_float32(float* dst, const std::uint16_t* src, std::size_t count) {
  kernels::current_kernels().float16_to_float32(dst, src, count);
}

void float32_to_float16(std::uint16_t* dst, const float* src, std::size_t count) {
  kernels::current_kernels().float32_to_float16(dst, src, count);
}

void bfloat16_to_float32(float* dst, const std::uint16_t* src, std::size_t count) {
  kernels::current_kernels().bfloat16_to_float32(dst, src, count);
}

void float32_to_bfloat16(std::uint16_t* dst, const float* src, std::size_t count) {
  kernels::current_kernels().float32_to_bfloat16(dst, src, count);
}

}  // namespace allring
