#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace allring {

/// Half-open ranges of numbers that do not touch each other: a set of bytes, by offset.
class RangeSet {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t size() const { return end - begin; }
  };

  void add(Range range);
  void remove(Range range);
  /// The parts of `range` that are in the set, ascending.
  std::vector<Range> within(Range range) const;
  /// The range of the set that holds `place`.
  std::optional<Range> around(std::uint64_t place) const;
  /// The first `size` numbers of the set, next to each other, that begin at a multiple of
  /// `alignment`.
  std::optional<Range> first_of(std::uint64_t size, std::uint64_t alignment) const;

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by begin
};

/// Hands out ranges of [0, bytes), first fit, so that equal sequences of calls give equal places.
/// Pure bookkeeping. Thread-compatible.
class RangeAllocator {
 public:
  explicit RangeAllocator(std::uint64_t bytes);

  /// @param size above 0. @return the range's begin, a multiple of `alignment` (a power of two), or
  ///         nullopt if there is no such gap.
  std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint64_t alignment);
  /// The free range of which the one at `begin` becomes a part, or nullopt if none was allocated
  /// there.
  std::optional<RangeSet::Range> free(std::uint64_t begin);
  std::uint64_t allocated_bytes() const { return allocated_bytes_; }

 private:
  RangeSet free_;
  std::map<std::uint64_t, std::uint64_t> sizes_;  // of what is allocated, by begin
  std::uint64_t allocated_bytes_ = 0;
};

}  // namespace allring
