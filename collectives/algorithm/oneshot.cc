#include "collectives/algorithm/oneshot.h"

#include <cstring>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/slot_protocol.h"

namespace allring {

namespace {

bool supports(const CollectiveArgs& args, Group& group) {
  return shares_memory(group) && args.bytes() <= group.host_memory()->slot_bytes();
}

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  SlotBlocks blocks(*group.host_memory(), 1, deadline);
  ALLRING_RETURN_IF_ERROR(blocks.await_writable(0));
  if (args.count > 0) std::memcpy(blocks.slot(0, group.rank()), args.input, args.bytes());
  blocks.publish(0);
  ALLRING_RETURN_IF_ERROR(blocks.await_all_published(0));

  const void* sources[kMostHostRanks];
  for (Rank rank = 0; rank < group.size(); ++rank) sources[rank] = blocks.slot(0, rank);
  sources[group.rank()] = args.input;
  void* output = args.output;
  reduce({&output, 1}, {sources, static_cast<std::size_t>(group.size())}, args.count,
         args.reduction);
  return {};
}

double cost_us(const CollectiveArgs& args, Group& group) {
  const MemoryCost memory = memory_cost(group);
  return memory.flag_us * (group.size() - 1) +
         // Everything is read by everybody, and more slowly than what is written at once.
         1.3 * args.bytes() * (group.size() - 1) * memory.us_per_byte;
}

}  // namespace

constinit const Algorithm kOneshotAllreduce{"oneshot", CollectiveKind::kAllreduce, supports, run,
                                            cost_us,   /*in_rank_order=*/true};

}  // namespace allring
