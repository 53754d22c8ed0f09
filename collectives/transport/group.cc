#include "collectives/transport/group.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace allring {

namespace {

constexpr std::size_t kPageBytes = 4096;

/// Some ranks of a parent transport under numbers of their own. Statuses keep the parent's.
class SubgroupTransport final : public Transport {
 public:
  SubgroupTransport(Transport& parent, std::vector<Rank> members)
      : parent_(parent), members_(std::move(members)) {
    const auto self = std::find(members_.begin(), members_.end(), parent_.rank());
    ALLRING_CHECK(self != members_.end(), "a subgroup contains the rank that makes it");
    rank_ = static_cast<Rank>(self - members_.begin());
  }

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  Result<Ticket> post_send(Rank peer, Tag tag, std::span<const std::byte> bytes) override {
    return parent_.post_send(members_[peer], tag, bytes);
  }
  Result<Ticket> post_recv(Rank peer, Tag tag, std::span<std::byte> bytes) override {
    return parent_.post_recv(members_[peer], tag, bytes);
  }
  Status wait(Ticket ticket, Deadline deadline) override { return parent_.wait(ticket, deadline); }
  void abort(Status reason) noexcept override { parent_.abort(std::move(reason)); }

 private:
  Transport& parent_;
  std::vector<Rank> members_;
  Rank rank_ = 0;
};

Topology sub_topology(const Topology& parent, const std::vector<Rank>& members) {
  std::vector<std::string> host_of;
  for (Rank member : members) host_of.push_back(std::to_string(parent.host(member)));
  return Topology(host_of);
}

}  // namespace

Group::Group(Topology topology, Transport& transport, HostMemory* host_memory)
    : topology_(std::move(topology)),
      rank_(transport.rank()),
      transport_(&transport),
      host_memory_(host_memory) {
  ALLRING_CHECK(topology_.size() == transport.size(), "topology and transport differ in size");
  ALLRING_CHECK(host_memory == nullptr || (host_memory->ranks() == transport.size() &&
                                           host_memory->rank() == transport.rank()),
                "host memory and transport differ in ranks");
}

Group::~Group() = default;

void Group::set_hierarchy(std::unique_ptr<Group> local, std::unique_ptr<Group> cross) {
  local_ = std::move(local);
  cross_ = std::move(cross);
}

void Group::Free::operator()(std::byte* memory) const { std::free(memory); }

Result<std::span<std::byte>> Group::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    const std::size_t rounded = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    scratch_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, rounded)));
    scratch_bytes_ = scratch_ != nullptr ? rounded : 0;
    if (scratch_ == nullptr)
      return Status::out_of_memory("rank " + std::to_string(rank()) + " got no " +
                                   std::to_string(rounded) + " bytes of working memory");
  }
  return std::span<std::byte>(scratch_.get(), bytes);
}

void Group::abort(Status reason) noexcept {
  ALLRING_CHECK(!reason.ok(), "abort needs a reason");
  if (abort_claimed_.exchange(true)) return;
  abort_reason_ = std::make_shared<const Status>(reason);
  aborted_.store(true, std::memory_order_release);
  if (host_memory_ != nullptr) host_memory_->abort(reason);
  if (local_ != nullptr) local_->abort(reason);
  if (cross_ != nullptr) cross_->abort(reason);
  transport_->abort(std::move(reason));
}

std::unique_ptr<Group> make_subgroup(Group& parent, const std::vector<Rank>& members,
                                     HostMemory* host_memory) {
  auto view = std::make_unique<SubgroupTransport>(parent.transport(), members);
  auto group =
      std::make_unique<Group>(sub_topology(parent.topology(), members), *view, host_memory);
  group->owned_transport_ = std::move(view);
  group->set_costs(parent.costs());
  return group;
}

void build_hierarchy(Group& group, HostMemory* local_memory) {
  const Topology& topology = group.topology();
  if (!topology.homogeneous() || topology.hosts() < 2) return;
  const Rank rank = group.rank();
  group.set_hierarchy(make_subgroup(group, topology.ranks_on(topology.host(rank)), local_memory),
                      make_subgroup(group, topology.cross_ranks(rank), nullptr));
}

}  // namespace allring
