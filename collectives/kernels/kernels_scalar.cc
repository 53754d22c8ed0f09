// What every processor of the architecture runs: 16-byte vectors, which the compiler lowers to
// whatever the baseline has (SSE2, NEON or plain registers).
#include "collectives/kernels/kernel_table.h"

#define ALLRING_VECTOR_BYTES 16
#define ALLRING_SIMD 0
#define ALLRING_KERNEL_TABLE kScalarKernels

namespace allring::kernels {
namespace {
// Each builds on those before it.
// clang-format off
#include "collectives/kernels/loops/vector.inc"
#include "collectives/kernels/loops/op.inc"
#include "collectives/kernels/loops/finish.inc"
#include "collectives/kernels/loops/element.inc"
#include "collectives/kernels/loops/bfloat16.inc"
#include "collectives/kernels/loops/float16_generic.inc"
#include "collectives/kernels/loops/reduce.inc"
// clang-format on
}  // namespace
#include "collectives/kernels/loops/table.inc"
}  // namespace allring::kernels
