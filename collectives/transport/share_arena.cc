#include "collectives/transport/share_arena.h"

#include <algorithm>

#include "collectives/transport/share_segment.h"

namespace allring {

Result<std::shared_ptr<Arena>> share_arena(Endpoint& endpoint, std::uint32_t channel,
                                           const std::vector<Rank>& members,
                                           std::size_t bytes_per_rank, Deadline deadline) {
  const int ranks = static_cast<int>(members.size());
  const auto make = [&]() -> Result<SharedSegment> {
    const Arena::Shape shape = Arena::Shape::of(ranks, bytes_per_rank);
    ALLRING_ASSIGN_OR_RETURN(auto segment, Segment::create_sparse(shape.bytes()));
    return SharedSegment{std::move(segment), shape.region_bytes};
  };
  ALLRING_ASSIGN_OR_RETURN(const SharedSegment shared,
                           share_segment(endpoint, channel, members,
                                         "an arena, so that buffers are copied", make, deadline));
  if (!shared.segment) return std::shared_ptr<Arena>();
  const auto me = std::find(members.begin(), members.end(), endpoint.rank());
  return std::make_shared<Arena>(shared.segment,
                                 Arena::Shape{ranks, static_cast<std::size_t>(shared.note)},
                                 static_cast<Rank>(me - members.begin()));
}

}  // namespace allring
