#include "collectives/transport/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "collectives/base/check.h"
#include "collectives/transport/memory_limit.h"

namespace allring {

namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugePageBytes = 2 << 20;
/// Memory is taken in such units: asking what the system may give costs more than a small piece.
constexpr std::size_t kReservedBytes = 1 << 20;

std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) { return value / unit * unit; }
std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return round_down(value + unit - 1, unit);
}

}  // namespace

Arena::Shape Arena::Shape::of(int ranks, std::size_t bytes_per_rank) {
  // An odd number of huge pages, far from a power of two and from its multiples' neighbourhood.
  constexpr std::size_t kStagger = 37;
  const std::size_t pages = round_up(bytes_per_rank, 64 * kHugePageBytes) / kHugePageBytes;
  return {ranks, (pages + kStagger) * kHugePageBytes};
}

Arena::Arena(std::shared_ptr<Segment> memory, Shape shape, Rank rank)
    : memory_(std::move(memory)),
      shape_(shape),
      rank_(rank),
      region_(memory_->bytes().data() + static_cast<std::size_t>(rank) * shape.region_bytes),
      allocator_(shape.region_bytes) {
  ALLRING_CHECK(memory_->bytes().size() >= shape.bytes(), "the memory holds all regions");
  unreserved_.add({0, shape.region_bytes});
  // A core dump would be as large as the address space, and give memory to all of it.
  madvise(memory_->bytes().data(), memory_->bytes().size(), MADV_DONTDUMP);
}

Status Arena::reserve(RangeSet::Range range) {
  if (unreserved_.within(range).empty()) return {};
  const RangeSet::Range units{
      round_down(range.begin, kReservedBytes),
      std::min<std::uint64_t>(round_up(range.end, kReservedBytes), shape_.region_bytes)};
  const auto missing = unreserved_.within(units);
  std::uint64_t wanted = 0;
  for (const RangeSet::Range& part : missing) wanted += part.size();
  const MemoryLimit limit = memory_limit();
  // The other ranks of the host mostly want the same at the same time.
  const std::uint64_t wanted_by_all = wanted * static_cast<std::uint64_t>(shape_.ranks);
  if (wanted_by_all > limit.free_bytes) {
    return Status::out_of_memory("the arena needs " + std::to_string(wanted) +
                                 " bytes more for each of " + std::to_string(shape_.ranks) +
                                 " ranks, " + limit.name + " leaves " +
                                 std::to_string(limit.free_bytes));
  }
  const std::uint64_t base = static_cast<std::uint64_t>(rank_) * shape_.region_bytes;
  for (const RangeSet::Range& part : missing) {
    ALLRING_RETURN_IF_ERROR(memory_->reserve(base + part.begin, part.size()));
    unreserved_.remove(part);
  }
  return {};
}

Result<std::byte*> Arena::allocate(std::size_t bytes) {
  const std::size_t unit = bytes >= kPageBytes ? kPageBytes : kLineBytes;
  if (bytes <= shape_.region_bytes) {
    const std::uint64_t size = round_up(std::max<std::size_t>(bytes, 1), unit);
    std::lock_guard lock(mutex_);
    if (const auto begin = allocator_.allocate(size, unit)) {
      if (Status status = reserve({*begin, *begin + size}); !status.ok()) {
        allocator_.free(*begin);
        return status;
      }
      return region_ + *begin;
    }
  }
  return Status::out_of_memory("the arena of " + std::to_string(shape_.region_bytes) +
                               " bytes has no room for " + std::to_string(bytes) +
                               " more (ALLRING_ARENA_BYTES sets its size)");
}

bool Arena::free(void* data) {
  const std::uint64_t begin = offset_of(data, 1);
  if (begin == kOutside) return false;
  std::lock_guard lock(mutex_);
  const auto gap = allocator_.free(begin);
  if (!gap) return false;
  const RangeSet::Range pages{round_up(gap->begin, kPageBytes), round_down(gap->end, kPageBytes)};
  // Of the gap, what still holds memory.
  std::uint64_t held = pages.end > pages.begin ? pages.size() : 0;
  for (const RangeSet::Range& part : unreserved_.within(pages)) held -= part.size();
  if (held < kLeastGivenBackBytes) return true;
  memory_->release(static_cast<std::uint64_t>(rank_) * shape_.region_bytes + pages.begin,
                   pages.size());
  unreserved_.add(pages);
  return true;
}

std::size_t Arena::allocated_bytes() const {
  std::lock_guard lock(mutex_);
  return allocator_.allocated_bytes();
}

}  // namespace allring
