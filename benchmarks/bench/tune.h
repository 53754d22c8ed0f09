#pragma once

#include <string>

#include "collectives/base/status.h"
#include "collectives/transport/cost_parameters.h"
#include "collectives/transport/group.h"

namespace allring::bench {

/// What was measured, equal on all ranks.
struct Tuning {
  CostParameters costs;
  bool host_memory = false;  ///< else these are the defaults
  bool within_host = false;
  bool between_hosts = false;

  /// The file: who was measured, what was not, and the parameters.
  std::string to_text(const Group& group) const;
};

/// Measures the media of `group`, all of whose ranks call it at once; takes some seconds. Medians,
/// the slowest rank's. @return what a collective fails with.
Result<Tuning> tune(Group& group);

}  // namespace allring::bench
