#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/options.h"
#include "collectives/base/status.h"
#include "runtime/rendezvous/job.h"
#include "runtime/rendezvous/key_value.h"
#include "runtime/rendezvous/store_client.h"
#include "runtime/rendezvous/store_server.h"

namespace allring {

/// The store of a job whose launcher has none, in rank 0's process.
class ServedStore {
 public:
  /// Serves at the first candidate that is free; tries again until the deadline, as a former
  /// process of the same job may still be ending. A TCP candidate's host is where the others find
  /// us; the port is served on every interface.
  /// @return kTimedOut saying what happened at each.
  static Result<std::unique_ptr<ServedStore>> serve(const std::vector<std::string>& candidates,
                                                    const std::string& secret, Deadline deadline);

  /// With the real port; no host for TCP.
  std::string address() const { return server_->address(); }

 private:
  MemoryKeyValueMap map_;
  std::unique_ptr<StoreServer> server_;
};

/// A rank's way to the job's store.
struct StoreAccess {
  std::unique_ptr<ServedStore> served;  ///< on rank 0 of a job without hvdrun
  std::vector<std::string> candidates;
  std::string secret;  ///< of the store
  /// Rank 0 serves the store, for one meeting: it ends when all have met.
  bool for_one_meeting = false;

  /// Serves the store if this rank has to, or learns where it is. Of a job that meets through MPI
  /// and has no secret, *job gets one.
  static Result<StoreAccess> open(const Options& options, JobDescription* job, Deadline deadline);

  Result<std::unique_ptr<StoreClient>> connect(Rank rank, Deadline deadline) const;
};

}  // namespace allring
