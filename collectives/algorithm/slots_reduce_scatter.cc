#include "collectives/algorithm/slots_reduce_scatter.h"

#include <cstring>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/slot_protocol.h"
#include "collectives/schedule/chunks.h"

namespace allring {

namespace {

// Each part starts on a line of its own and may be one element larger than the even share.
constexpr std::size_t kLossPerPart = 2 * kCacheLineBytes;

bool supports(const CollectiveArgs&, Group& group) {
  return shares_memory(group) &&
         group.host_memory()->slot_bytes() >= 2 * kLossPerPart * group.size();
}

std::size_t lines(std::size_t bytes) {
  return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  const Rank rank = group.rank();
  const int size = group.size();
  const std::size_t element = element_bytes(args.reduction.dtype);
  const std::size_t capacity = group.host_memory()->slot_bytes() - kLossPerPart * size;
  const int count = static_cast<int>((args.bytes() + capacity - 1) / capacity);
  const auto* input = static_cast<const std::byte*>(args.input);
  auto* output = static_cast<std::byte*>(args.output);

  SlotBlocks blocks(*group.host_memory(), count, deadline);
  for (int block = 0; block < count; ++block) {
    ALLRING_RETURN_IF_ERROR(blocks.await_writable(block));
    std::byte* slot = blocks.slot(block, rank);
    const std::byte* chunk = input;
    std::size_t place = 0, own_place = 0;
    const std::byte* own = nullptr;
    for (Rank owner = 0; owner < size; ++owner) {
      const Chunk part = even_chunk(args.counts[owner], count, block);
      const std::byte* source = chunk + part.offset * element;
      if (owner == rank) {
        own_place = place;
        own = source;
      } else if (part.count > 0) {
        std::memcpy(slot + place, source, part.count * element);
      }
      place += lines(part.count * element);
      chunk += args.counts[owner] * element;
    }
    blocks.publish(block);
    ALLRING_RETURN_IF_ERROR(blocks.await_all_published(block));

    const void* sources[kMostHostRanks];
    for (Rank from = 0; from < size; ++from) sources[from] = blocks.slot(block, from) + own_place;
    sources[rank] = own;
    const Chunk part = even_chunk(args.counts[rank], count, block);
    void* sum = output + part.offset * element;
    reduce({&sum, 1}, {sources, static_cast<std::size_t>(size)}, part.count, args.reduction);
  }
  return {};
}

double cost_us(const CollectiveArgs& args, Group& group) {
  const MemoryCost memory = memory_cost(group);
  const double blocks = 1.0 + args.bytes() / group.host_memory()->slot_bytes();
  return blocks * memory.flag_us * (group.size() - 1) + args.bytes() * memory.us_per_byte;
}

}  // namespace

constinit const Algorithm kSlotsReduceScatter{
    "slots", CollectiveKind::kReduceScatter, supports, run, cost_us, /*in_rank_order=*/true};

}  // namespace allring
