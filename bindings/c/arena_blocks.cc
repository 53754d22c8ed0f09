#include "bindings/c/arena_blocks.h"

#include <utility>

namespace allring {

Result<void*> ArenaBlocks::allocate(std::shared_ptr<Arena> arena, std::size_t bytes) {
  if (arena == nullptr)
    return Status::unsupported(
        "there is no arena: this rank is alone on its host, or ALLRING_ARENA_BYTES or "
        "ALLRING_SHARED_MEMORY is 0, or the host lacks memory for it");
  ALLRING_ASSIGN_OR_RETURN(std::byte* const data, arena->allocate(bytes));
  std::lock_guard lock(mutex_);
  arenas_.emplace(data, std::move(arena));
  return static_cast<void*>(data);
}

Status ArenaBlocks::free(void* data) {
  std::shared_ptr<Arena> arena;
  {
    std::lock_guard lock(mutex_);
    const auto found = arenas_.find(data);
    if (found == arenas_.end())
      return Status::invalid_argument(
          "allring_arena_free: this address was not given by allring_arena_allocate, or was freed");
    arena = std::move(found->second);
    arenas_.erase(found);
  }
  arena->free(data);
  return {};
}

}  // namespace allring
