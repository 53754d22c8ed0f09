#pragma once

#include <stddef.h>
#include <stdint.h>

#include "collectives/base/types.h"

// The seam between common code and the kernels of one instruction set. The files that define these
// tables are compiled with -mavx2 and the like, so neither they nor this header may define or
// instantiate anything with external linkage besides the table: the linker merges inline functions
// of equal names, and an old processor would then run the wrong copy.

namespace allring::kernels {

/// What happens to a complete result: Reduction's members of the same names.
struct Finish {
  double scale;
  int64_t divisor;
};

/// dsts[k][i] = srcs[0][i] op srcs[1][i] op ..., for i < count.
using ReduceKernel = void (*)(void* const* dsts, size_t outputs, const void* const* srcs,
                              size_t inputs, size_t count, const Finish& finish);

/// Rows of the table: ReduceOp less those that never get here.
enum OpRow : int { kSumRow, kMinRow, kMaxRow, kProductRow, kOpRows };

/// All kernels of one instruction set.
struct KernelTable {
  int simd;                                       ///< as Simd
  ReduceKernel partial[kDataTypeCount][kOpRows];  ///< ignores `finish`
  ReduceKernel finished[kDataTypeCount][kOpRows];
  void (*float16_to_float32)(float* dst, const uint16_t* src, size_t count);
  void (*float32_to_float16)(uint16_t* dst, const float* src, size_t count);
  void (*bfloat16_to_float32)(float* dst, const uint16_t* src, size_t count);
  void (*float32_to_bfloat16)(uint16_t* dst, const float* src, size_t count);
};

extern const KernelTable kScalarKernels;
extern const KernelTable kAvx2Kernels;    ///< x86-64 only
extern const KernelTable kAvx512Kernels;  ///< x86-64 only

/// The table in use.
const KernelTable& current_kernels();

}  // namespace allring::kernels
