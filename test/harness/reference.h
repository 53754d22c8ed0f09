#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/base/types.h"

namespace allring::test {

/// `count` tame elements: reals in (-2, 2) with all mantissa bits used, small integers, truth
/// values. Different for each rank, reproducible from `seed`.
std::vector<std::byte> tame_elements(DataType dtype, std::size_t count, Rank rank,
                                     std::uint64_t seed);

/// What an allreduce must give, element by element, computed one rank after the other: exactly for
/// integers and bool, and for floats in long double, with the deviation that the promise of the
/// runtime allows: one rounding for 16-bit floats (of a float32 accumulation), n for the others.
class Expected {
 public:
  /// @param inputs of all ranks, of equal length
  /// @param op kAverage and kSum, kMin, kMax, kProduct; not average of bool
  Expected(const std::vector<std::vector<std::byte>>& inputs, DataType dtype, ReduceOp op,
           double postscale = 1.0);

  /// Compares `count` elements with the expected ones from `first` on. @return "" or what is wrong
  /// first: "element 7 is 1.25, expected 1.5 within 0.001".
  std::string compare(const std::byte* got, std::size_t first, std::size_t count) const;

 private:
  DataType dtype_;
  std::vector<std::int64_t> exact_;    // of integers and bool
  std::vector<double> value_, slack_;  // of floats
};

}  // namespace allring::test
