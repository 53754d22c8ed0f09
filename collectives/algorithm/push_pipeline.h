#pragma once

#include <cstddef>

#include "collectives/algorithm/algorithm.h"
#include "collectives/algorithm/slot_protocol.h"
#include "collectives/schedule/chunks.h"

namespace allring {

/// The steps of the row "push" (push.h). begin() waits for nobody that has not left the collective
/// before; finish() does the rest. Thread-compatible.
class PushPipeline {
 public:
  PushPipeline(const CollectiveArgs& args, Group& group, Deadline deadline);

  Status begin();
  Status finish();

 private:
  Chunk elements(std::size_t block) const;
  Chunk own_slice(std::size_t block) const;
  /// All of a block but the own slice.
  void copy(std::byte* target, const std::byte* source, std::size_t block) const;
  Status pack(std::size_t block);
  Status add(std::size_t block);
  Status unpack(std::size_t block);
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

}  // namespace allring
