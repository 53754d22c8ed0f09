#pragma once

#include <string>
#include <string_view>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"

namespace allring {

/// The rendezvous: a small key-value service that all ranks of a job reach before they know each
/// other. A key is written once; waiting is how ranks synchronise. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  /// Makes `key` readable by all. A second put of the same key replaces the value.
  virtual Status put(std::string_view key, std::string_view value) = 0;

  /// Blocks until some rank has put `key`, and returns its value.
  /// @return kTimedOut naming the key; kPeerLost if the service is gone.
  virtual Result<std::string> wait(std::string_view key, Deadline deadline) = 0;

  /// Forgets `key`; unknown keys are fine.
  virtual Status remove(std::string_view key) = 0;
};

}  // namespace allring
