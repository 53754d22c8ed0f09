// For AVX2 with F16C and FMA (that is x86-64-v3, though contraction to FMA is off: it would round
// differently from the other tables).
#include <immintrin.h>

#include "collectives/kernels/kernel_table.h"

#define ALLRING_VECTOR_BYTES 32
#define ALLRING_SIMD 1
#define ALLRING_KERNEL_TABLE kAvx2Kernels

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
