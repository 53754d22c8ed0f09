#include "collectives/transport/share_host_memory.h"

#include <algorithm>
#include <utility>

#include "collectives/base/log.h"
#include "collectives/transport/share_segment.h"

namespace allring {

namespace {

/// Memory for the largest shape that there is memory for, slots halved until it fits; its note is
/// the size of a slot.
Result<SharedSegment> reserve(HostMemory::Shape shape, const std::string& hostname) {
  const std::size_t wanted = shape.slot_bytes;
  const std::size_t least = std::min(shape.slot_bytes, kLeastSlotBytes);
  while (true) {
    Result<std::shared_ptr<Segment>> segment = Segment::create(shape.bytes());
    const std::size_t half = shape.slot_bytes / 2 / 4096 * 4096;
    if (segment.ok()) {
      if (shape.slot_bytes < wanted) {
        ALLRING_LOG(kWarning, "the ranks on host " << hostname << " use shared-memory slots of "
                                                   << shape.slot_bytes << " bytes instead of "
                                                   << wanted << " for lack of memory");
      }
      return SharedSegment{*segment, shape.slot_bytes};
    }
    if (segment.status().code() != StatusCode::kOutOfMemory || half < least)
      return segment.status();
    shape.slot_bytes = half;
  }
}

}  // namespace

Result<std::unique_ptr<HostMemory>> share_host_memory(Endpoint& endpoint, std::uint32_t channel,
                                                      const std::vector<Rank>& members,
                                                      HostMemory::Shape shape, WaitPolicy policy,
                                                      Deadline deadline) {
  shape.ranks = static_cast<int>(members.size());
  ALLRING_ASSIGN_OR_RETURN(
      const SharedSegment shared,
      share_segment(
          endpoint, channel, members, "shared memory, over sockets, which is slower",
          [&] { return reserve(shape, endpoint.info().hostname); }, deadline));
  if (!shared.segment) return std::unique_ptr<HostMemory>();
  shared.segment->close_fd();
  shape.slot_bytes = shared.note;
  ALLRING_CHECK(shape.bytes() <= shared.segment->bytes().size(), "all ranks share one shape");
  const auto me = std::find(members.begin(), members.end(), endpoint.rank());
  return std::make_unique<HostMemory>(shape, static_cast<Rank>(me - members.begin()),
                                      shared.segment->bytes().first(shape.bytes()), shared.segment,
                                      policy);
}

}  // namespace allring
