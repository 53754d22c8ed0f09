#pragma once

#include <cstddef>
#include <span>

#include "collectives/base/types.h"

namespace allring {

/// A tensor, or a part of one, that goes into a batch.
struct PackPiece {
  const void* src = nullptr;
  std::size_t count = 0;
};

/// Where it comes back to.
struct UnpackPiece {
  void* dst = nullptr;
  std::size_t count = 0;
};

/// Copies the pieces one after the other to dst, without gaps, each element multiplied by `factor`
/// in the same pass, as scale() does it; a factor of 1 is a plain copy. dst overlaps no piece.
/// Thread-safe.
void pack(void* dst, std::span<const PackPiece> pieces, DataType dtype, double factor);

/// The way back: the elements at src, in order, to the pieces.
void unpack(std::span<const UnpackPiece> pieces, const void* src, DataType dtype, double factor);

}  // namespace allring
