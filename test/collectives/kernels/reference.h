#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/kernels/reduce.h"

namespace allring::test {

/// What reduce() must give for one element, computed the plain way: integers in __int128, floats
/// one operation at a time, 16-bit floats rounded by arithmetic on long double. @param sources the
/// element of each source @param result element_bytes(reduction.dtype) bytes.
void reference_reduce(const std::vector<const std::byte*>& sources, const Reduction& reduction,
                      std::byte* result);

/// The value of a 16-bit float, and the nearest 16-bit float to a value, ties to even.
float half_value(std::uint16_t half, DataType dtype);
std::uint16_t nearest_half(float value, DataType dtype);

/// Equal bits, or both NaN: which of two NaNs an addition returns is the compiler's choice.
bool same_element(const std::byte* a, const std::byte* b, DataType dtype);

/// `count` elements from `seed`, one in eight of them special: zeros, largest and smallest values
/// and, for floats, infinities, denormals and NaNs.
std::vector<std::byte> random_elements(DataType dtype, std::size_t count, std::uint64_t seed);

/// "0x7fc0" of an element.
std::string hex(const std::byte* element, DataType dtype);

/// Instruction sets that this processor has, scalar first.
std::vector<std::string> available_simd();

/// Leaves set_simd() as it was found.
class SimdGuard {
 public:
  explicit SimdGuard(const std::string& name);
  ~SimdGuard();
};

}  // namespace allring::test
