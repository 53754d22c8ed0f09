#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace allring {

/// A run of elements within a vector, both in elements.
struct Chunk {
  std::size_t offset = 0;
  std::size_t count = 0;

  std::size_t end() const { return offset + count; }
  bool operator==(const Chunk&) const = default;
};

/// Chunk `index` of `count` elements split over `parts`, in order and without gaps. Sizes differ by
/// one at most, and the first count % parts chunks are the larger ones: Horovod's rule for which
/// elements a rank gets from reducescatter, applied there to the first dimension.
/// REQUIRES: parts >= 1, 0 <= index < parts.
Chunk even_chunk(std::size_t count, int parts, int index);

/// The counts of all even chunks.
std::vector<std::size_t> even_counts(std::size_t count, int parts);

/// What chunks of a vector in memory that two ranks write at once must not share.
inline constexpr std::size_t kCacheLineBytes = 64;

/// As even_chunk, but every boundary between chunks lies at a multiple of 64 bytes from the
/// vector's start, so that ranks that write neighbouring chunks of shared memory never share a
/// cache line. Sizes differ by 64 bytes at most, apart from the last elements; late chunks may be
/// empty.
/// @param element_bytes a power of two, at most 64.
Chunk aligned_chunk(std::size_t count, std::size_t element_bytes, int parts, int index);

/// Offsets of chunks of given counts: element r is counts[0] + ... + counts[r - 1], and the last,
/// one more than there are counts, is the sum.
std::vector<std::size_t> offsets_of(std::span<const std::size_t> counts);

}  // namespace allring
