#include "collectives/schedule/chunks.h"

#include <algorithm>

#include "collectives/base/check.h"

namespace allring {

Chunk even_chunk(std::size_t count, int parts, int index) {
  ALLRING_CHECK(parts >= 1 && index >= 0 && index < parts, "chunk index out of range");
  const auto n = static_cast<std::size_t>(parts);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t base = count / n;
  const std::size_t larger = count % n;
  return {i * base + std::min(i, larger), base + (i < larger ? 1 : 0)};
}

std::vector<std::size_t> even_counts(std::size_t count, int parts) {
  std::vector<std::size_t> counts;
  for (int i = 0; i < parts; ++i) counts.push_back(even_chunk(count, parts, i).count);
  return counts;
}

Chunk aligned_chunk(std::size_t count, std::size_t element_bytes, int parts, int index) {
  ALLRING_CHECK(element_bytes >= 1 && kCacheLineBytes % element_bytes == 0,
                "elements must fill cache lines evenly");
  const std::size_t per_line = kCacheLineBytes / element_bytes;
  const std::size_t lines = count / per_line + (count % per_line != 0 ? 1 : 0);
  const Chunk chunk = even_chunk(lines, parts, index);
  // Compared in lines: an end in elements could overflow.
  const auto element = [&](std::size_t line) { return line == lines ? count : line * per_line; };
  const std::size_t begin = element(chunk.offset);
  return {begin, element(chunk.end()) - begin};
}

std::vector<std::size_t> offsets_of(std::span<const std::size_t> counts) {
  std::vector<std::size_t> offsets{0};
  for (const std::size_t count : counts) offsets.push_back(offsets.back() + count);
  return offsets;
}

}  // namespace allring
