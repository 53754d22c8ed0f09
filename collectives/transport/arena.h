#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/range_allocator.h"
#include "collectives/transport/segment.h"

namespace allring {

/// Memory in which the ranks of one host reach each other's buffers: one mapping, of which each
/// rank has a region that it hands out pieces of. What lies there is reduced where it is, without a
/// copy (algorithm/direct.h). Regions are address space; pages are reserved when a piece of them is
/// handed out, by the mebibyte, and given back when much is free.
///
/// Ranks are those of the host here, 0, 1, ... Thread-safe.
class Arena {
 public:
  struct Shape {
    int ranks = 1;
    std::size_t region_bytes = 0;

    /// Regions of about `bytes_per_rank` at distances that caches tolerate: some processors guess
    /// the way of their first-level cache from hashed address bits, which repeat at large powers of
    /// two.
    static Shape of(int ranks, std::size_t bytes_per_rank);
    std::size_t bytes() const { return region_bytes * static_cast<std::size_t>(ranks); }
  };

  /// @param memory sparse, of shape.bytes(), the same on all ranks, which take their pages from it.
  Arena(std::shared_ptr<Segment> memory, Shape shape, Rank rank);

  Rank rank() const { return rank_; }
  int ranks() const { return shape_.ranks; }

  /// Zeroed only where it is used for the first time; aligned to 64, from a page on to 4096.
  /// @return kOutOfMemory saying what is full: the region or what the system may give.
  Result<std::byte*> allocate(std::size_t bytes);
  /// What allocate() gave, else false. No collective may have it under way any more.
  bool free(void* data);
  std::size_t allocated_bytes() const;

  /// A gap of fewer keeps its memory: what a step frees the next one takes again, and fresh pages
  /// are slow.
  static constexpr std::size_t kLeastGivenBackBytes = 64 << 20;

  static constexpr std::uint64_t kOutside = ~std::uint64_t{0};
  /// Where `bytes` at `data` lie in this rank's region, or kOutside.
  std::uint64_t offset_of(const void* data, std::size_t bytes) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(region_);
    const auto place = reinterpret_cast<std::uintptr_t>(data);
    const bool inside = place >= begin && place - begin < shape_.region_bytes &&
                        bytes <= shape_.region_bytes - (place - begin);
    return inside ? place - begin : kOutside;
  }
  /// What `rank` calls its offset.
  std::byte* at(Rank rank, std::uint64_t offset) const {
    return memory_->bytes().data() + static_cast<std::size_t>(rank) * shape_.region_bytes + offset;
  }

 private:
  Status reserve(RangeSet::Range range);

  const std::shared_ptr<Segment> memory_;
  const Shape shape_;
  const Rank rank_;
  std::byte* const region_;
  mutable std::mutex mutex_;
  RangeAllocator allocator_;
  RangeSet unreserved_;  // pages of the region that hold no memory
};

}  // namespace allring
