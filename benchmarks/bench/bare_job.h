#pragma once

#include <memory>

#include "collectives/base/options.h"
#include "collectives/base/status.h"
#include "runtime/rendezvous/session.h"

namespace allring::bench {

/// The ranks of the job that the environment describes, met, with one lane and no runtime.
struct BareJob {
  Options options;
  std::unique_ptr<Session> session;
  std::unique_ptr<LaneNetwork> lane;  ///< ends before the session

  /// Blocks until all ranks have met.
  static Result<BareJob> join();
};

}  // namespace allring::bench
