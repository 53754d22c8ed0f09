#pragma once

#include "collectives/kernels/reduce.h"

namespace allring {

/// Whether results of some of the ranks may be stored in the reduction's own dtype and added to
/// later without a second rounding of what is promised to round once: true for everything but sums
/// and products of 16-bit floats. (Integers wrap, which is associative; float32 and float64
/// accumulate in themselves.) Over two ranks there are no partial results.
inline bool allows_partial_results(const Reduction& reduction) {
  return !is_half(reduction.dtype) || reduction.op == ReduceOp::kMin ||
         reduction.op == ReduceOp::kMax;
}

/// Whether another order or grouping of the ranks may give other bits: for sums and products of
/// floats by rounding, for their minimum and maximum by the sign of zero. Integers and bools give
/// the same in any.
inline bool rounding_depends_on_order(const Reduction& reduction) {
  return is_floating(reduction.dtype);
}

}  // namespace allring
