#include "collectives/kernels/pack.h"

#include "collectives/kernels/reduce.h"

namespace allring {

void pack(void* dst, std::span<const PackPiece> pieces, DataType dtype, double factor) {
  auto* at = static_cast<std::byte*>(dst);
  for (const PackPiece& piece : pieces) {
    scale(at, piece.src, piece.count, dtype, factor);
    at += piece.count * element_bytes(dtype);
  }
}

void unpack(std::span<const UnpackPiece> pieces, const void* src, DataType dtype, double factor) {
  const auto* at = static_cast<const std::byte*>(src);
  for (const UnpackPiece& piece : pieces) {
    scale(piece.dst, at, piece.count, dtype, factor);
    at += piece.count * element_bytes(dtype);
  }
}

}  // namespace allring
