#pragma once

#include "collectives/base/status.h"
#include "collectives/transport/group.h"

namespace allring {

/// What one executor lane of one process set moves bytes with: a transport that reaches every
/// member, the shared memory of the members on this host, and the group over both.
/// Thread-compatible (the lane that owns it), except abort().
class LaneNetwork {
 public:
  virtual ~LaneNetwork() = default;

  /// Local and cross subgroups are built where the topology allows; host_memory() is there when
  /// all members share this host and Options::shared_memory is on.
  virtual Group& group() = 0;

  /// Fails pending and later operations with `reason`. Thread-safe.
  virtual void abort(Status reason) noexcept = 0;
};

}  // namespace allring
