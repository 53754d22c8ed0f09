#include "collectives/algorithm/direct.h"

#include <cstring>
#include <optional>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/flags.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/line_exchange.h"
#include "collectives/algorithm/push.h"
#include "collectives/algorithm/push_pipeline.h"
#include "collectives/schedule/chunks.h"

namespace allring {

namespace {

/// Where a rank's buffers lie in the arena.
struct Places {
  std::uint64_t input = Arena::kOutside;
  std::uint64_t output = Arena::kOutside;

  bool in_arena() const { return input != Arena::kOutside && output != Arena::kOutside; }
};

bool supports(const CollectiveArgs&, Group& group) {
  return shares_memory(group) && group.arena().arena != nullptr;
}

void add_own_slice(const CollectiveArgs& args, Group& group, const Places* places) {
  const std::size_t element = element_bytes(args.reduction.dtype);
  const Chunk slice = aligned_chunk(args.count, element, group.size(), group.rank());
  const std::size_t offset = slice.offset * element;
  const void* sources[kMostHostRanks];
  void* sums[kMostHostRanks];
  for (Rank rank = 0; rank < group.size(); ++rank) {
    sources[rank] = group.arena().at(rank, places[rank].input) + offset;
    sums[rank] = group.arena().at(rank, places[rank].output) + offset;
  }
  const auto ranks = static_cast<std::size_t>(group.size());
  reduce({sums, ranks}, {sources, ranks}, slice.count, args.reduction);
}

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  Places places[kMostHostRanks];
  Places& own = places[group.rank()];
  own.input = group.arena().arena->offset_of(args.input, args.bytes());
  own.output = group.arena().arena->offset_of(args.output, args.bytes());

  LineExchange exchange(*group.host_memory());
  std::memcpy(exchange.payload(), &own, sizeof(own));
  exchange.announce();
  // Ranks come here whenever their gradients are there, so that some will sleep: a flag wakes them.
  HostMemory& memory = *group.host_memory();
  const auto announced = static_cast<std::uint32_t>(++memory.sequence(kPlacesSequence));
  memory.post(kPlacesFlag, announced);
  std::optional<PushPipeline> push;
  if (!own.in_arena()) ALLRING_RETURN_IF_ERROR(push.emplace(args, group, deadline).begin());

  bool all_in_arena = true;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (!exchange.arrived(rank))
      ALLRING_RETURN_IF_ERROR(memory.wait_at_least(kPlacesFlag, rank, announced, deadline));
    std::memcpy(&places[rank], exchange.payload(rank), sizeof(Places));
    all_in_arena &= places[rank].in_arena();
  }
  if (all_in_arena) {
    add_own_slice(args, group, places);
    // Others have to be done with this rank's buffers, too.
    return kFlagsBarrier.run(args, group, deadline);
  }
  if (!push) ALLRING_RETURN_IF_ERROR(push.emplace(args, group, deadline).begin());
  return push->finish();
}

// As the worse case; which it will be is not known before the call.
double cost_us(const CollectiveArgs& args, Group& group) {
  return kPushAllreduce.cost_us(args, group) * 0.999;
}

}  // namespace

constinit const Algorithm kDirectAllreduce{"direct", CollectiveKind::kAllreduce, supports, run,
                                           cost_us,  /*in_rank_order=*/true};

}  // namespace allring
