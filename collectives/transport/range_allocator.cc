#include "collectives/transport/range_allocator.h"

#include <algorithm>
#include <iterator>

namespace allring {

void RangeSet::add(Range range) {
  if (range.size() == 0) return;
  auto next = ends_.upper_bound(range.begin);
  if (next != ends_.begin() && std::prev(next)->second >= range.begin) {
    --next;
    range.begin = next->first;
  }
  while (next != ends_.end() && next->first <= range.end) {
    range.end = std::max(range.end, next->second);
    next = ends_.erase(next);
  }
  ends_.emplace(range.begin, range.end);
}

void RangeSet::remove(Range range) {
  for (const Range& part : within(range)) {
    const Range whole = *around(part.begin);
    ends_.erase(whole.begin);
    if (whole.begin < part.begin) ends_.emplace(whole.begin, part.begin);
    if (part.end < whole.end) ends_.emplace(part.end, whole.end);
  }
}

std::vector<RangeSet::Range> RangeSet::within(Range range) const {
  std::vector<Range> parts;
  auto next = ends_.upper_bound(range.begin);
  if (next != ends_.begin()) --next;
  for (; next != ends_.end() && next->first < range.end; ++next) {
    const Range part{std::max(next->first, range.begin), std::min(next->second, range.end)};
    if (part.begin < part.end) parts.push_back(part);
  }
  return parts;
}

std::optional<RangeSet::Range> RangeSet::around(std::uint64_t place) const {
  auto next = ends_.upper_bound(place);
  if (next == ends_.begin()) return std::nullopt;
  --next;
  if (next->second <= place) return std::nullopt;
  return Range{next->first, next->second};
}

std::optional<RangeSet::Range> RangeSet::first_of(std::uint64_t size,
                                                  std::uint64_t alignment) const {
  for (const auto& [begin, end] : ends_) {
    const std::uint64_t place = (begin + alignment - 1) / alignment * alignment;
    if (place < end && end - place >= size) return Range{place, place + size};
  }
  return std::nullopt;
}

RangeAllocator::RangeAllocator(std::uint64_t bytes) { free_.add({0, bytes}); }

std::optional<std::uint64_t> RangeAllocator::allocate(std::uint64_t size, std::uint64_t alignment) {
  const auto place = free_.first_of(size, alignment);
  if (!place) return std::nullopt;
  const std::uint64_t begin = place->begin;
  free_.remove(*place);
  sizes_.emplace(begin, size);
  allocated_bytes_ += size;
  return begin;
}

std::optional<RangeSet::Range> RangeAllocator::free(std::uint64_t begin) {
  const auto found = sizes_.find(begin);
  if (found == sizes_.end()) return std::nullopt;
  free_.add({begin, begin + found->second});
  allocated_bytes_ -= found->second;
  sizes_.erase(found);
  return free_.around(begin);
}

}  // namespace allring
