#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/base/options.h"
#include "collectives/base/status.h"
#include "collectives/schedule/topology.h"
#include "runtime/process_set/process_set.h"
#include "runtime/rendezvous/session.h"

namespace allring {

/// One rank's runtime: its session with the other ranks and its process sets. Owns and wires,
/// decides nothing. Any number may live in one process, each as one rank. Thread-safe.
class Runtime {
 public:
  /// This rank's place in the job.
  struct Place {
    Rank rank = 0;
    int size = 1;
    int local_rank = 0;
    int local_size = 1;
    int cross_rank = 0;
    int cross_size = 1;
    bool homogeneous = true;  ///< all hosts have equally many ranks
  };

  /// Meets the other ranks of the job and starts. Blocks until all ranks are there, at most
  /// Options::start_timeout_seconds.
  /// @return kTimedOut naming the missing ranks, kInvalidArgument for options, kPeerLost,
  ///         kMismatch.
  static Result<std::unique_ptr<Runtime>> join(const Options& options, const JobDescription& job);

  /// Starts over connections that are there already: for ranks that are threads of one process.
  /// @param global settings of process set 0, with all ranks as members.
  static Result<std::unique_ptr<Runtime>> start(const Options& options, Place place,
                                                ProcessSet::Settings global,
                                                ProcessSet::Links links);

  /// One rank alone, which has nobody to meet: no store, no sockets.
  static Result<std::unique_ptr<Runtime>> start_alone(const Options& options,
                                                      const std::string& hostname);

  /// shutdown().
  ~Runtime();

  const Place& place() const { return place_; }
  const Options& options() const { return options_; }
  /// "rank 3 (host b)".
  const std::string& description() const { return description_; }

  /// @return kInvalidArgument if there is no such set.
  Result<ProcessSet*> process_set(std::int64_t id) const;

  /// Memory that the ranks of this host reduce in place, or null.
  std::shared_ptr<Arena> arena() const { return arena_; }

  /// Leaves all process sets, see ProcessSet::shutdown(), and ends the session. The object stays
  /// usable for asking.
  void shutdown();

 private:
  Runtime(const Options& options, Place place) : options_(options), place_(place) {}

  Options options_;
  Place place_;
  std::string description_;
  std::mutex shutdown_mutex_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<Arena> arena_;
  std::vector<std::unique_ptr<ProcessSet>> sets_;  // ends before the session
};

}  // namespace allring
