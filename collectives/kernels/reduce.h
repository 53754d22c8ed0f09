#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "collectives/base/status.h"
#include "collectives/base/types.h"

namespace allring {

/// What to do with the elements of all ranks, resolved from the user's op: never kAverage.
struct Reduction {
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;  ///< kSum, kMin, kMax or kProduct
  /// The result is multiplied by this once, when complete. For 16-bit floats in float32 before the
  /// one rounding, for integers in double, truncating toward zero; what does not fit becomes the
  /// nearest that does, NaN zero. Bool ignores it.
  double scale = 1.0;
  /// Integers only, and at least 1: the complete result is divided by this, before scale, exactly,
  /// truncating toward zero.
  std::int64_t divisor = 1;

  bool finishing() const { return scale != 1.0 || divisor != 1; }
  /// The same without scale and divisor: for partial results.
  Reduction partial() const { return {dtype, op, 1.0, 1}; }

  /// kAverage over `size` ranks becomes a sum with scale 1/size (floats) or divisor size
  /// (integers). @return kInvalidArgument for average of bool and for kAdasum.
  static Result<Reduction> resolve(DataType dtype, ReduceOp op, int size, double postscale);
};

/// dsts[k][i] = finish(srcs[0][i] op srcs[1][i] op ...), for all k and i < count: the one pass in
/// which data are added. A dst may be one of the srcs (the same pointer, not an overlap).
/// Sources are combined in the order given, so equal orders give equal bits; 16-bit floats
/// accumulate in float32 and round once, to nearest even; integers wrap; bools are true if not 0
/// and come out as 0 or 1. Every instruction set gives the same bits.
/// NaN: sum and product propagate; min and max propagate NaN as numpy's minimum and maximum do.
/// Where two NaNs meet, which one comes out of a sum or product is not specified.
/// Cost: each source is read and each dst written once, at the speed of memory or of the
/// second-level cache; 16-bit floats at half of that or better, integers with scale or divisor at
/// 1 GB/s or better.
/// @param reduction scale and divisor are applied (pass partial() for a partial result).
/// REQUIRES: srcs.size() >= 1, dsts.size() >= 1. Thread-safe.
void reduce(std::span<void* const> dsts, std::span<const void* const> srcs, std::size_t count,
            const Reduction& reduction);

/// dst[i] = a[i] op b[i], finished if reduction.finishing(). dst may be a or b.
void reduce2(void* dst, const void* a, const void* b, std::size_t count,
             const Reduction& reduction);

/// dst[i] = src[i] * factor (16-bit floats in float32, integers in double, truncating; bool is
/// copied). dst may be src.
void scale(void* dst, const void* src, std::size_t count, DataType dtype, double factor);

/// 16-bit floats to and from float32, to nearest even.
void float16_to_float32(float* dst, const std::uint16_t* src, std::size_t count);
void float32_to_float16(std::uint16_t* dst, const float* src, std::size_t count);
void bfloat16_to_float32(float* dst, const std::uint16_t* src, std::size_t count);
void float32_to_bfloat16(std::uint16_t* dst, const float* src, std::size_t count);

/// Instruction sets that kernels are compiled for.
enum class Simd : int { kScalar = 0, kAvx2 = 1, kAvx512 = 2 };
/// The best one this processor has (AVX2 needs F16C and FMA; AVX-512 needs F, BW, VL and DQ).
Simd best_simd();
/// The one in use: best_simd() unless set_simd() lowered it.
Simd current_simd();
/// For the option SIMD ("auto", "scalar", "avx2", "avx512") and for tests.
/// @return kUnsupported if this processor lacks it, kInvalidArgument for another word.
Status set_simd(std::string_view name);

}  // namespace allring
