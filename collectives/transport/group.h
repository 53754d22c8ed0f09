#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectives/schedule/topology.h"
#include "collectives/transport/arena.h"
#include "collectives/transport/cost_parameters.h"
#include "collectives/transport/host_memory.h"
#include "collectives/transport/transport.h"

namespace allring {

/// The arena of the host as the ranks of a group see it.
struct GroupArena {
  std::shared_ptr<Arena> arena;  ///< null: there is none
  std::vector<Rank> places;      ///< by rank of the group: its rank in the arena

  std::byte* at(Rank rank, std::uint64_t offset) const { return arena->at(places[rank], offset); }
};

/// The ranks that take part in a collective, and what they can move bytes with: what an algorithm
/// gets. All members of a group run the same collectives in the same order, on one thread each.
/// Thread-compatible, except abort().
class Group {
 public:
  /// @param transport reaches every rank of the group; not owned.
  /// @param host_memory shared by all ranks of the group, or null; not owned.
  Group(Topology topology, Transport& transport, HostMemory* host_memory);
  ~Group();

  Rank rank() const { return rank_; }
  int size() const { return topology_.size(); }
  Transport& transport() { return *transport_; }
  /// Null unless all ranks of this group share memory.
  HostMemory* host_memory() { return host_memory_; }
  const Topology& topology() const { return topology_; }
  /// There where all ranks of this group share an arena.
  const GroupArena& arena() const { return arena_; }
  void set_arena(GroupArena arena) { arena_ = std::move(arena); }
  /// Equal on all ranks. Subgroups have those that their parent had when they were made.
  const CostParameters& costs() const { return costs_; }
  void set_costs(const CostParameters& costs) { costs_ = costs; }

  /// Gives the groups of a hierarchy: `local`, the ranks on this host (with their shared memory, if
  /// they have it), and `cross`, the ranks with the same local_rank on all hosts. Both use this
  /// group's transport, with their own numbering. Null members when topology().homogeneous() is
  /// false or there is one host only.
  void set_hierarchy(std::unique_ptr<Group> local, std::unique_ptr<Group> cross);
  Group* local() { return local_.get(); }
  Group* cross() { return cross_.get(); }

  /// A tag for the next message exchange; equal on all ranks as they call it equally often.
  Tag next_tag() { return ++tag_; }

  /// Working memory of an algorithm, aligned to 4096, with undefined content; valid until the next
  /// call. Kept and only ever grown, so that a large collective does not fault fresh pages each
  /// time.
  /// @return kOutOfMemory.
  Result<std::span<std::byte>> scratch(std::size_t bytes);

  /// Fails pending and later operations of the group and its subgroups. The first reason stays.
  /// Thread-safe.
  void abort(Status reason) noexcept;
  /// The reason, or ok. Costs one load until then. Thread-safe.
  Status abort_reason() const {
    return aborted_.load(std::memory_order_acquire) ? *abort_reason_ : Status();
  }

 private:
  Topology topology_;
  Rank rank_;
  Transport* transport_;
  HostMemory* host_memory_;
  GroupArena arena_;
  CostParameters costs_;
  std::unique_ptr<Group> local_;
  std::unique_ptr<Group> cross_;
  std::unique_ptr<Transport> owned_transport_;  // a subgroup's view of its parent's transport
  Tag tag_ = 0;
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> scratch_;
  std::size_t scratch_bytes_ = 0;
  std::atomic<bool> abort_claimed_{false};
  std::atomic<bool> aborted_{false};
  std::shared_ptr<const Status> abort_reason_;  // written once, before aborted_ is set

  friend std::unique_ptr<Group> make_subgroup(Group& parent, const std::vector<Rank>& members,
                                              HostMemory* host_memory);
};

/// The group of `members` (ranks of parent, each once, parent.rank() among them), which shares the
/// parent's transport and therefore its thread. Member i gets rank i; equal lists on all members.
std::unique_ptr<Group> make_subgroup(Group& parent, const std::vector<Rank>& members,
                                     HostMemory* host_memory);

/// Builds local and cross subgroups where the topology allows and hands them to `group`.
/// @param local_memory shared by the ranks of this host, or null; not owned.
void build_hierarchy(Group& group, HostMemory* local_memory);

}  // namespace allring
