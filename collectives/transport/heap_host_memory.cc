#include "collectives/transport/heap_host_memory.h"

#include <cstdlib>
#include <cstring>

namespace allring {

std::vector<std::unique_ptr<HostMemory>> make_heap_host_memory(HostMemory::Shape shape,
                                                               WaitPolicy policy) {
  constexpr std::size_t kPageBytes = 4096;
  const std::size_t bytes = (shape.bytes() + kPageBytes - 1) / kPageBytes * kPageBytes;
  std::shared_ptr<void> block(std::aligned_alloc(kPageBytes, bytes), std::free);
  ALLRING_CHECK(block != nullptr, "out of memory");
  std::memset(block.get(), 0, bytes);
  std::vector<std::unique_ptr<HostMemory>> views;
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    views.push_back(std::make_unique<HostMemory>(
        shape, rank, std::span(static_cast<std::byte*>(block.get()), bytes), block, policy));
  }
  return views;
}

}  // namespace allring
