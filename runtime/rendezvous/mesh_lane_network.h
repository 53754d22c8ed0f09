#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/schedule/topology.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/group.h"
#include "collectives/transport/host_memory.h"
#include "collectives/transport/mesh.h"
#include "runtime/rendezvous/lane_network.h"

namespace allring {

/// The LaneNetwork between processes: a MeshTransport, and shared memory of the members on this
/// host where it is of use.
class MeshLaneNetwork final : public LaneNetwork {
 public:
  struct Settings {
    std::uint32_t channel = 1;
    std::vector<Rank> members;  ///< ranks of the job, ascending
    Topology topology;          ///< of the members
    bool shared_memory = true;
    std::size_t slot_bytes = 256 * 1024;
    GroupArena arena;  ///< where all members share one
    WaitPolicy wait;
    nanoseconds connect_timeout = seconds(30);
    CostParameters costs;
  };

  /// Blocks until the members on this host share memory, or know that they do not. Connections to
  /// others are made when they are first used.
  /// @param endpoint outlives the network. @return kTimedOut, kPeerLost, kOutOfMemory.
  static Result<std::unique_ptr<LaneNetwork>> create(Endpoint& endpoint, Settings settings,
                                                     Deadline deadline);

  Group& group() override { return *group_; }
  void abort(Status reason) noexcept override { group_->abort(std::move(reason)); }

 private:
  MeshLaneNetwork() = default;

  std::unique_ptr<MeshTransport> transport_;
  std::unique_ptr<HostMemory> memory_;
  std::unique_ptr<Group> group_;
};

}  // namespace allring
