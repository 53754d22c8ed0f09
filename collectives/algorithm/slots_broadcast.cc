#include "collectives/algorithm/slots_broadcast.h"

#include <algorithm>
#include <cstring>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/slot_protocol.h"

namespace allring {

namespace {

bool supports(const CollectiveArgs&, Group& group) { return shares_memory(group); }

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  const Rank rank = group.rank();
  const std::size_t block_bytes = group.host_memory()->slot_bytes();
  const std::size_t count = (args.bytes() + block_bytes - 1) / block_bytes;
  auto* data = static_cast<std::byte*>(args.output);

  SlotBlocks blocks(*group.host_memory(), count, deadline);
  blocks.open();
  for (std::size_t block = 0; block < count; ++block) {
    const std::size_t offset = block * block_bytes;
    const std::size_t bytes = std::min(block_bytes, args.bytes() - offset);
    if (rank == args.root) {
      ALLRING_RETURN_IF_ERROR(blocks.await_writable(block));
      std::memcpy(blocks.slot(block, rank), data + offset, bytes);
      blocks.publish(block);
    } else {
      ALLRING_RETURN_IF_ERROR(blocks.await_published(block, args.root));
      std::memcpy(data + offset, blocks.slot(block, args.root), bytes);
    }
    blocks.done(block);
  }
  return {};
}

double cost_us(const CollectiveArgs& args, Group& group) {
  const MemoryCost memory = memory_cost(group);
  const double blocks = 1.0 + args.bytes() / group.host_memory()->slot_bytes();
  return blocks * memory.flag_us * (group.size() - 1) + args.bytes() * 2 * memory.us_per_byte;
}

}  // namespace

constinit const Algorithm kSlotsBroadcast{"slots", CollectiveKind::kBroadcast, supports, run,
                                          cost_us};

}  // namespace allring
