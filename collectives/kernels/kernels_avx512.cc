// For AVX-512 F, BW, VL and DQ (x86-64-v4).
#include <immintrin.h>

#include "collectives/kernels/kernel_table.h"

#define ALLRING_VECTOR_BYTES 64
#define ALLRING_SIMD 2
#define ALLRING_KERNEL_TABLE kAvx512Kernels

namespace allring::kernels {
namespace {
// Each builds on those before it.
// clang-format off
#include "collectives/kernels/loops/vector.inc"
#include "collectives/kernels/loops/op.inc"
#include "collectives/kernels/loops/finish.inc"
#include "collectives/kernels/loops/element.inc"
#include "collectives/kernels/loops/bfloat16.inc"
#include "collectives/kernels/loops/float16_f16c.inc"
#include "collectives/kernels/loops/reduce.inc"
// clang-format on
}  // namespace
#include "collectives/kernels/loops/table.inc"
}  // namespace allring::kernels
