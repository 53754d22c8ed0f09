#include "collectives/algorithm/push.h"

#include <algorithm>
#include <cstring>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/slot_protocol.h"
#include "collectives/schedule/chunks.h"

namespace allring {

namespace {

bool supports(const CollectiveArgs&, Group& group) { return shares_memory(group); }

class Push {
 public:
  Push(const CollectiveArgs& args, Group& group, Deadline deadline)
      : args_(args),
        rank_(group.rank()),
        size_(group.size()),
        element_bytes_(element_bytes(args.reduction.dtype)),
        block_count_(group.host_memory()->slot_bytes() / element_bytes_),
        count_((args.count + block_count_ - 1) / block_count_),
        blocks_(*group.host_memory(), count_, deadline) {}

  // While a block is being added by all, the next is being packed and the last one unpacked.
  Status run() {
    blocks_.open();
    if (count_ > 0) ALLRING_RETURN_IF_ERROR(pack(0));
    for (std::size_t block = 0; block < count_; ++block) {
      if (block + 1 < count_) ALLRING_RETURN_IF_ERROR(pack(block + 1));
      ALLRING_RETURN_IF_ERROR(add(block));
      if (block > 0) ALLRING_RETURN_IF_ERROR(unpack(block - 1));
    }
    return count_ > 0 ? unpack(count_ - 1) : Status();
  }

 private:
  Chunk elements(std::size_t block) const {
    const std::size_t offset = block * block_count_;
    return {offset, std::min(block_count_, args_.count - offset)};
  }
  Chunk own_slice(std::size_t block) const {
    return aligned_chunk(elements(block).count, element_bytes_, size_, rank_);
  }

  /// All of a block but the own slice.
  void copy(std::byte* target, const std::byte* source, std::size_t block) const {
    const Chunk slice = own_slice(block);
    const std::size_t before = slice.offset * element_bytes_;
    const std::size_t after = slice.end() * element_bytes_;
    std::memcpy(target, source, before);
    std::memcpy(target + after, source + after, elements(block).count * element_bytes_ - after);
  }

  Status pack(std::size_t block) {
    ALLRING_RETURN_IF_ERROR(blocks_.await_writable(block));
    copy(blocks_.slot(block, rank_), input(block), block);
    blocks_.publish(block);
    return {};
  }

  Status add(std::size_t block) {
    ALLRING_RETURN_IF_ERROR(blocks_.await_all_published(block));
    const Chunk slice = own_slice(block);
    const std::size_t offset = slice.offset * element_bytes_;
    const void* sources[kMostHostRanks];
    void* sums[kMostHostRanks];
    for (Rank rank = 0; rank < size_; ++rank)
      sources[rank] = sums[rank] = blocks_.slot(block, rank) + offset;
    sources[rank_] = input(block) + offset;
    sums[rank_] = output(block) + offset;
    const auto ranks = static_cast<std::size_t>(size_);
    reduce({sums, ranks}, {sources, ranks}, slice.count, args_.reduction);
    blocks_.done(block);
    return {};
  }

  Status unpack(std::size_t block) {
    ALLRING_RETURN_IF_ERROR(blocks_.await_all_done(block));
    copy(output(block), blocks_.slot(block, rank_), block);
    return {};
  }

  const std::byte* input(std::size_t block) const {
    return static_cast<const std::byte*>(args_.input) + elements(block).offset * element_bytes_;
  }
  std::byte* output(std::size_t block) const {
    return static_cast<std::byte*>(args_.output) + elements(block).offset * element_bytes_;
  }

  const CollectiveArgs& args_;
  const Rank rank_;
  const int size_;
  const std::size_t element_bytes_;
  const std::size_t block_count_;  // elements of a full block
  const std::size_t count_;        // of blocks
  SlotBlocks blocks_;
};

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  return Push(args, group, deadline).run();
}

double cost_us(const CollectiveArgs& args, Group& group) {
  const MemoryCost memory = memory_cost(group);
  const double blocks = 1.0 + args.bytes() / group.host_memory()->slot_bytes();
  return 2.0 * blocks * memory.flag_us * (group.size() - 1) +
         2.0 * args.bytes() * (group.size() - 1) / group.size() * memory.us_per_byte;
}

}  // namespace

constinit const Algorithm kPushAllreduce{"push",  CollectiveKind::kAllreduce, supports, run,
                                         cost_us, /*in_rank_order=*/true};

}  // namespace allring
