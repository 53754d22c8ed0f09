#include "collectives/algorithm/slots_allgather.h"

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
  const int size = group.size();
  const std::size_t element = element_bytes(args.reduction.dtype);
  const std::size_t block_bytes = group.host_memory()->slot_bytes();
  const std::size_t largest = *std::max_element(args.counts.begin(), args.counts.end()) * element;
  const std::size_t count = (largest + block_bytes - 1) / block_bytes;
  const auto* input = static_cast<const std::byte*>(args.input);

  // What a block holds of a contribution of so many bytes.
  const auto piece = [&](std::size_t bytes, std::size_t block) {
    const std::size_t begin = std::min(bytes, block * block_bytes);
    return std::min(bytes - begin, block_bytes);
  };

  SlotBlocks blocks(*group.host_memory(), count, deadline);
  for (std::size_t block = 0; block < count; ++block) {
    ALLRING_RETURN_IF_ERROR(blocks.await_writable(block));
    const std::size_t offset = block * block_bytes;
    if (const std::size_t bytes = piece(args.counts[rank] * element, block); bytes > 0)
      std::memcpy(blocks.slot(block, rank), input + offset, bytes);
    blocks.publish(block);

    auto* place = static_cast<std::byte*>(args.output);
    for (Rank from = 0; from < size; ++from) {
      const std::size_t total = args.counts[from] * element;
      const std::size_t bytes = piece(total, block);
      if (from != rank) {
        ALLRING_RETURN_IF_ERROR(blocks.await_published(block, from));
        if (bytes > 0) std::memcpy(place + offset, blocks.slot(block, from), bytes);
      } else if (bytes > 0 && place != input) {
        std::memcpy(place + offset, input + offset, bytes);
      }
      place += total;
    }
    ALLRING_RETURN_IF_ERROR(blocks.await_all_published(block));  // for what it tells
  }
  return {};
}

double cost_us(const CollectiveArgs& args, Group& group) {
  const MemoryCost memory = memory_cost(group);
  const double blocks = 1.0 + args.bytes() / group.size() / group.host_memory()->slot_bytes();
  return blocks * memory.flag_us * (group.size() - 1) +
         args.bytes() * (1 + 1.0 / group.size()) * memory.us_per_byte;
}

}  // namespace

constinit const Algorithm kSlotsAllgather{"slots", CollectiveKind::kAllgather, supports, run,
                                          cost_us};

}  // namespace allring
