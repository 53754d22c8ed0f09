#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "collectives/base/status.h"
#include "collectives/transport/arena.h"

namespace allring {

/// What callers have taken from arenas, which stay for it, even after the runtime has gone.
/// Thread-safe.
class ArenaBlocks {
 public:
  Result<void*> allocate(std::shared_ptr<Arena> arena, std::size_t bytes);
  /// @return kInvalidArgument for what was not allocated here.
  Status free(void* data);

 private:
  std::mutex mutex_;
  std::map<void*, std::shared_ptr<Arena>> arenas_;
};

}  // namespace allring
