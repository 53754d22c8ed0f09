#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/transport/group.h"
#include "test/harness/fault_plan.h"

namespace allring::test {

/// What the ranks of a test exchange messages through.
enum class Medium {
  kInproc,            ///< InprocNetwork, buffered
  kInprocRendezvous,  ///< InprocNetwork, a send completes when it is received
  kShm,               ///< MeshTransport: rings in shared memory within a host, TCP between hosts
  kUnixSockets,       ///< MeshTransport: unix sockets within a host, TCP between hosts
  kTcp,               ///< MeshTransport: TCP on the loopback everywhere
};
std::string medium_name(Medium medium);

/// A made-up job.
struct Cluster {
  /// The host of each rank: its size is the number of ranks.
  std::vector<std::string> host_of;
  Medium medium = Medium::kInproc;
  /// Whether the ranks of a host share memory: the whole group's if there is one host, else that of
  /// the local groups of its hierarchy.
  bool host_memory = false;
  /// With host_memory and one host: whether the ranks share an arena, too, of `arena_bytes` each.
  bool arena = true;
  std::size_t arena_bytes = 64 << 20;
  HostMemory::Shape shape = {.ranks = 0, .buffers = 3, .slot_bytes = 64 * 1024};
  /// The option WAIT. Tests have more ranks than cores.
  std::string wait = "auto";
  FaultPlan fault;
  /// When a rank's body fails, the others' groups are aborted, as the control plane would do.
  bool abort_others = true;
  /// After this, says which ranks have not come back and aborts them.
  nanoseconds timeout = seconds(60);

  /// `size` ranks on one host.
  static Cluster one_host(int size, Medium medium = Medium::kInproc, bool host_memory = false);
  /// ranks_per_host[h] ranks on each host, host by host.
  static Cluster hosts(const std::vector<int>& ranks_per_host, Medium medium = Medium::kInproc,
                       bool host_memory = false);
};

/// Runs `body` once per rank, each on a thread of its own ("rank 3") with its Group, and joins them
/// all. @return what each body returned, by rank.
std::vector<Status> run_ranks(const Cluster& cluster, const std::function<Status(Group&)>& body);

/// "" if all are ok, else the failures, one line each, the first causes (not kAborted) first.
std::string failures(const std::vector<Status>& statuses);

}  // namespace allring::test
