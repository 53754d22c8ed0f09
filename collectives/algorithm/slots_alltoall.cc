#include "collectives/algorithm/slots_alltoall.h"

#include <algorithm>
#include <cstring>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/slot_protocol.h"
#include "collectives/schedule/chunks.h"

namespace allring {

namespace {

constexpr std::size_t kLeastPartBytes = 512;

bool supports(const CollectiveArgs&, Group& group) {
  return shares_memory(group) &&
         group.host_memory()->slot_bytes() >= kCacheLineBytes + kLeastPartBytes * group.size();
}

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  const Rank rank = group.rank();
  const int size = group.size();
  const std::size_t element = element_bytes(args.reduction.dtype);
  const std::size_t slot_bytes = group.host_memory()->slot_bytes();
  const std::size_t part_bytes =
      (slot_bytes - kCacheLineBytes) / size / kCacheLineBytes * kCacheLineBytes;
  // The head of a slot is how many blocks its owner has to send.
  const auto part = [&](std::byte* slot, Rank to) {
    return slot + kCacheLineBytes + to * part_bytes;
  };

  std::uint64_t own_blocks = 1;
  for (Rank to = 0; to < size; ++to) {
    if (to != rank)
      own_blocks = std::max(own_blocks, (args.counts[to] * element + part_bytes - 1) / part_bytes);
  }

  SlotBlocks blocks(*group.host_memory(), 1, deadline);
  std::uint64_t count = 1;
  for (std::uint64_t block = 0; block < count; ++block) {
    const std::size_t begin = block * part_bytes;
    const auto piece = [&](std::size_t bytes) {
      return begin < bytes ? std::min(part_bytes, bytes - begin) : 0;
    };
    ALLRING_RETURN_IF_ERROR(blocks.await_writable(block));
    std::byte* own = blocks.slot(block, rank);
    if (block == 0) std::memcpy(own, &own_blocks, sizeof own_blocks);
    const auto* source = static_cast<const std::byte*>(args.input);
    for (Rank to = 0; to < size; ++to) {
      const std::size_t bytes = args.counts[to] * element;
      if (to != rank && piece(bytes) > 0) std::memcpy(part(own, to), source + begin, piece(bytes));
      source += bytes;
    }
    blocks.publish(block);
    ALLRING_RETURN_IF_ERROR(blocks.await_all_published(block));
    if (block == 0) {
      for (Rank from = 0; from < size; ++from) {
        std::uint64_t theirs = 0;
        std::memcpy(&theirs, blocks.slot(0, from), sizeof theirs);
        count = std::max(count, theirs);
      }
      blocks.extend(count - 1);
    }
    auto* target = static_cast<std::byte*>(args.output);
    for (Rank from = 0; from < size; ++from) {
      const std::size_t bytes = args.recv_counts[from] * element;
      if (from != rank && piece(bytes) > 0)
        std::memcpy(target + begin, part(blocks.slot(block, from), rank), piece(bytes));
      target += bytes;
    }
  }

  const std::size_t kept_bytes = args.counts[rank] * element;
  if (kept_bytes > 0) {
    std::memcpy(static_cast<std::byte*>(args.output) + offsets_of(args.recv_counts)[rank] * element,
                static_cast<const std::byte*>(args.input) + offsets_of(args.counts)[rank] * element,
                kept_bytes);
  }
  return {};
}

// Counts differ from rank to rank, so they may not decide.
double cost_us(const CollectiveArgs&, Group& group) {
  return memory_cost(group).flag_us * (group.size() - 1);
}

}  // namespace

constinit const Algorithm kSlotsAlltoall{"slots", CollectiveKind::kAlltoall, supports, run,
                                         cost_us};

}  // namespace allring
