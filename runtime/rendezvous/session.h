#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/options.h"
#include "collectives/base/status.h"
#include "collectives/schedule/topology.h"
#include "collectives/transport/arena.h"
#include "runtime/negotiation/control_channel.h"
#include "runtime/rendezvous/job.h"
#include "runtime/rendezvous/lane_network.h"

namespace allring {

struct PeerInfo;

/// The ranks of one job after they have found each other: from the environment's description to
/// connections between any of them. Every rank makes one, uses it, and ends it before the next;
/// that may be repeated in one process.
///
/// Thread-safe. Ends after everything that it made.
class Session {
 public:
  /// Blocks until all ranks of the job have called it, at most Options::start_timeout_seconds.
  /// Rank 0 serves the store where no launcher does.
  /// @return kTimedOut naming the ranks that did not come, with the same words on every rank that
  ///         could be reached; kMismatch if ranks run different versions; kPeerLost, kUnsupported.
  static Result<std::unique_ptr<Session>> join(const Options& options, const JobDescription& job);

  virtual ~Session() = default;

  /// As given to join(), but with every number known: local and cross ranks that the environment
  /// left out are derived from the peers' hosts.
  virtual const JobDescription& job() const = 0;
  /// Of the whole job.
  virtual const Topology& topology() const = 0;
  /// Indexed by rank.
  virtual const std::vector<PeerInfo>& peers() const = 0;
  /// "rank 3 (host b, pid 77)", for messages.
  virtual std::string describe(Rank rank) const = 0;

  /// The arena of the ranks on this host, or null.
  virtual std::shared_ptr<Arena> arena() const = 0;

  /// The control channel of a process set. Blocks until all members have called it.
  /// @param process_set its number, the same on all members, 0 for all ranks; may be reused
  ///        once the former channel is destroyed on all members.
  /// @param members ranks of the job, ascending, this one among them. Member i is rank i of the
  ///        channel; reasons of failure name ranks of the job.
  /// @return kTimedOut or kPeerLost naming the rank that did not come.
  virtual Result<std::unique_ptr<ControlChannel>> control(std::uint32_t process_set,
                                                          const std::vector<Rank>& members,
                                                          Deadline deadline) = 0;

  /// The network of lane `lane` (0 .. kLanesPerProcessSet-1) of a process set; as control().
  virtual Result<std::unique_ptr<LaneNetwork>> lane(std::uint32_t process_set, int lane,
                                                    const std::vector<Rank>& members,
                                                    Deadline deadline) = 0;

  static constexpr int kLanesPerProcessSet = 63;
};

}  // namespace allring
