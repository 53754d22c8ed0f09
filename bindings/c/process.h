#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "bindings/c/arena_blocks.h"
#include "bindings/c/operation.h"
#include "collectives/base/status.h"
#include "runtime/core/runtime.h"

namespace allring {

/// The one runtime of this process and its handles: what the C functions work on. Thread-safe.
class Process {
 public:
  /// Made at the first call and never destroyed: threads may call while the process exits.
  static Process& instance();

  /// Fails in the child of a fork, where none of the runtime's threads exist and any lock may be
  /// held for ever: to be asked before anything else.
  Status check_fork() const;

  Status init();
  Status shutdown();

  /// @return kInvalidArgument if not initialized.
  Result<std::shared_ptr<Runtime>> runtime() const;
  /// Null if not initialized.
  std::shared_ptr<Runtime> runtime_or_null() const;

  HandleTable& handles() { return handles_; }
  ArenaBlocks& arena_blocks() { return arena_blocks_; }

 private:
  Process() = default;

  std::atomic<pid_t> owner_{0};  // who has initialized, 0 while nobody has
  std::mutex lifecycle_mutex_;   // held all through init() and shutdown()
  mutable std::mutex mutex_;
  std::shared_ptr<Runtime> runtime_;
  HandleTable handles_;
  ArenaBlocks arena_blocks_;
};

}  // namespace allring
