#include "collectives/algorithm/push_pipeline.h"

#include <algorithm>
#include <cstring>

#include "collectives/algorithm/host_ranks.h"

namespace allring {

PushPipeline::PushPipeline(const CollectiveArgs& args, Group& group, Deadline deadline)
    : args_(args),
      rank_(group.rank()),
      size_(group.size()),
      element_bytes_(element_bytes(args.reduction.dtype)),
      block_count_(group.host_memory()->slot_bytes() / element_bytes_),
      count_((args.count + block_count_ - 1) / block_count_),
      blocks_(*group.host_memory(), count_, deadline) {}

Status PushPipeline::begin() {
  blocks_.open();
  return count_ > 0 ? pack(0) : Status();
}

// While a block is being added by all, the next is being packed and the last one unpacked.
Status PushPipeline::finish() {
  for (std::size_t block = 0; block < count_; ++block) {
    if (block + 1 < count_) ALLRING_RETURN_IF_ERROR(pack(block + 1));
    ALLRING_RETURN_IF_ERROR(add(block));
    if (block > 0) ALLRING_RETURN_IF_ERROR(unpack(block - 1));
  }
  return count_ > 0 ? unpack(count_ - 1) : Status();
}

Chunk PushPipeline::elements(std::size_t block) const {
  const std::size_t offset = block * block_count_;
  return {offset, std::min(block_count_, args_.count - offset)};
}

Chunk PushPipeline::own_slice(std::size_t block) const {
  return aligned_chunk(elements(block).count, element_bytes_, size_, rank_);
}

void PushPipeline::copy(std::byte* target, const std::byte* source, std::size_t block) const {
  const Chunk slice = own_slice(block);
  const std::size_t before = slice.offset * element_bytes_;
  const std::size_t after = slice.end() * element_bytes_;
  std::memcpy(target, source, before);
  std::memcpy(target + after, source + after, elements(block).count * element_bytes_ - after);
}

Status PushPipeline::pack(std::size_t block) {
  ALLRING_RETURN_IF_ERROR(blocks_.await_writable(block));
  copy(blocks_.slot(block, rank_), input(block), block);
  blocks_.publish(block);
  return {};
}

Status PushPipeline::add(std::size_t block) {
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

Status PushPipeline::unpack(std::size_t block) {
  ALLRING_RETURN_IF_ERROR(blocks_.await_all_done(block));
  copy(output(block), blocks_.slot(block, rank_), block);
  return {};
}

}  // namespace allring
