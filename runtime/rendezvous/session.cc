#include "runtime/rendezvous/session.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "collectives/base/check.h"
#include "collectives/base/log.h"
#include "collectives/transport/core_mask.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/peer_info.h"
#include "collectives/transport/share_arena.h"
#include "runtime/negotiation/socket_control_channel.h"
#include "runtime/rendezvous/introduction.h"
#include "runtime/rendezvous/job_secret.h"
#include "runtime/rendezvous/mesh_lane_network.h"
#include "runtime/rendezvous/store_access.h"

namespace allring {

namespace {

constexpr std::uint32_t kChannelsPerProcessSet = 64;
/// Shared memory of this number is the arena: 0 is a control channel's, which shares none.
constexpr std::uint32_t kArenaChannel = 0;

nanoseconds to_nanoseconds(double seconds_count) {
  return nanoseconds(static_cast<std::int64_t>(seconds_count * 1e9));
}

Result<std::unique_ptr<Endpoint>> start_endpoint(const Options& options,
                                                 const JobDescription& job) {
  Endpoint::Settings settings;
  settings.rank = job.rank;
  settings.size = job.size;
  settings.hostname = job.hostname;
  settings.secret = job.single_host ? job.secret : network_secret(job.secret, job.job_id);
  settings.reach = job.single_host ? Endpoint::Reach::kUnixOnly : Endpoint::Reach::kNetwork;
  settings.interfaces = options.network_interfaces;
  settings.shared_memory = options.shared_memory;
  return Endpoint::start(std::move(settings));
}

Result<std::vector<PeerInfo>> meet(const StoreAccess& access, const Introduction& mine,
                                   const JobDescription& job, Deadline deadline) {
  for (;;) {
    const auto store = access.connect(job.rank, deadline);
    if (!store.ok())
      return access.for_one_meeting
                 ? store.status().with_prefix("rank 0 of " + std::to_string(job.size) +
                                              " did not come: ")
                 : store.status();
    Result<std::vector<PeerInfo>> peers = introduce(**store, mine, deadline);
    // A rank that is quick to join again finds the store of the former meeting, on a rank 0 that is
    // about to close it, and has to look for the new one.
    const bool former = access.for_one_meeting && job.rank != 0 &&
                        peers.status().code() == StatusCode::kPeerLost &&
                        Clock::real().now() < deadline;
    if (!former) return peers;
  }
}

Topology topology_of(const std::vector<PeerInfo>& peers, const std::vector<Rank>& members) {
  std::vector<std::string> host_of;
  for (Rank member : members) host_of.push_back(peers[member].host_key);
  return Topology(host_of);
}

std::vector<Rank> all_ranks(int size) {
  std::vector<Rank> ranks(size);
  for (Rank rank = 0; rank < size; ++rank) ranks[rank] = rank;
  return ranks;
}

void derive_places(const Topology& topology, JobDescription* job) {
  if (job->local_rank < 0) job->local_rank = topology.local_rank(job->rank);
  if (job->local_size < 0) job->local_size = topology.local_size(job->rank);
  const std::vector<Rank> cross = topology.cross_ranks(job->rank);
  if (job->cross_rank < 0)
    job->cross_rank =
        static_cast<int>(std::find(cross.begin(), cross.end(), job->rank) - cross.begin());
  if (job->cross_size < 0) job->cross_size = static_cast<int>(cross.size());
}

/// Bytes of a rank's region.
std::size_t arena_share(const Options& options, std::size_t ranks_on_host) {
  const auto machine = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::min(static_cast<std::size_t>(options.arena_bytes), machine / ranks_on_host);
}

class SocketSession final : public Session {
 public:
  SocketSession(const Options& options, const CostParameters& costs, JobDescription job,
                std::unique_ptr<Endpoint> endpoint)
      : options_(options),
        costs_(costs),
        job_(std::move(job)),
        endpoint_(std::move(endpoint)),
        topology_(topology_of(endpoint_->peers(), all_ranks(job_.size))) {
    derive_places(topology_, &job_);
  }

  const JobDescription& job() const override { return job_; }
  const Topology& topology() const override { return topology_; }
  const std::vector<PeerInfo>& peers() const override { return endpoint_->peers(); }
  std::string describe(Rank rank) const override { return endpoint_->peer(rank).describe(); }
  std::shared_ptr<Arena> arena() const override { return arena_; }

  /// Blocks until the ranks of this host share an arena, or know that they do not.
  Status make_arena(Deadline deadline) {
    const std::vector<Rank>& neighbours = topology_.ranks_on(topology_.host(job_.rank));
    const std::size_t bytes = arena_share(options_, neighbours.size());
    if (!options_.shared_memory || bytes == 0) return {};
    ALLRING_ASSIGN_OR_RETURN(arena_,
                             share_arena(*endpoint_, kArenaChannel, neighbours, bytes, deadline));
    return {};
  }

  Result<std::unique_ptr<ControlChannel>> control(std::uint32_t process_set,
                                                  const std::vector<Rank>& members,
                                                  Deadline deadline) override {
    SocketControlChannel::Settings settings;
    settings.channel = process_set * kChannelsPerProcessSet;
    settings.members = members;
    settings.heartbeat_timeout = to_nanoseconds(options_.heartbeat_timeout_seconds);
    ALLRING_ASSIGN_OR_RETURN(
        auto channel, SocketControlChannel::connect(*endpoint_, std::move(settings), deadline));
    return std::unique_ptr<ControlChannel>(std::move(channel));
  }

  Result<std::unique_ptr<LaneNetwork>> lane(std::uint32_t process_set, int lane,
                                            const std::vector<Rank>& members,
                                            Deadline deadline) override {
    ALLRING_CHECK(lane >= 0 && lane < kLanesPerProcessSet, "a lane's number");
    MeshLaneNetwork::Settings settings;
    settings.channel = process_set * kChannelsPerProcessSet + 1 + static_cast<std::uint32_t>(lane);
    settings.members = members;
    settings.topology = topology_of(endpoint_->peers(), members);
    settings.shared_memory = options_.shared_memory;
    settings.slot_bytes = static_cast<std::size_t>(options_.shared_memory_slot_bytes);
    settings.arena = arena_of(members);
    settings.connect_timeout = to_nanoseconds(options_.start_timeout_seconds);
    settings.costs = costs_;
    // All ranks of the host, of whatever process set, share its cores.
    settings.wait =
        WaitPolicy::choose(topology_.local_size(job_.rank), options_.wait, cores_of_host());
    return MeshLaneNetwork::create(*endpoint_, std::move(settings), deadline);
  }

 private:
  /// Cores that at least one rank of this host may run on.
  int cores_of_host() const {
    std::vector<std::string_view> masks;
    for (Rank rank : topology_.ranks_on(topology_.host(job_.rank)))
      masks.push_back(endpoint_->peer(rank).core_mask);
    return count_cores(masks);
  }

  /// Where the members lie in the arena, if all of them are on this host.
  GroupArena arena_of(const std::vector<Rank>& members) const {
    GroupArena result;
    for (Rank member : members) {
      if (topology_.host(member) != topology_.host(job_.rank)) return {};
      result.places.push_back(topology_.local_rank(member));
    }
    result.arena = arena_;
    return result;
  }

  const Options options_;
  const CostParameters costs_;
  JobDescription job_;
  const std::unique_ptr<Endpoint> endpoint_;
  const Topology topology_;
  std::shared_ptr<Arena> arena_;
};

void warn_of_guessable_secret(const Session& session) {
  const JobDescription& job = session.job();
  if (job.rank != 0 || session.topology().hosts() == 1 || !job.secret.empty()) return;
  ALLRING_LOG(kWarning,
              "this job spans hosts, and who started it ("
                  << job_source_name(job.source)
                  << ") gave it no secret: whoever reaches its ports and guesses its name "
                     "can take part. Set ALLRING_SECRET_FILE or ALLRING_SECRET to the "
                     "same on all ranks, or start it with hvdrun");
}

}  // namespace

Result<std::unique_ptr<Session>> Session::join(const Options& options,
                                               const JobDescription& given) {
  JobDescription job = given;
  const nanoseconds start_timeout = to_nanoseconds(options.start_timeout_seconds);
  const Deadline deadline = deadline_after(start_timeout);
  ALLRING_ASSIGN_OR_RETURN(const CostParameters costs, CostParameters::load(options.tuning_file));
  StoreAccess access;
  if (job.size > 1) {
    ALLRING_ASSIGN_OR_RETURN(access, StoreAccess::open(options, &job, deadline));
  }
  ALLRING_ASSIGN_OR_RETURN(auto endpoint, start_endpoint(options, job));
  std::vector<PeerInfo> peers = {endpoint->info()};
  if (job.size > 1) {
    Introduction mine;
    mine.self = endpoint->info();
    mine.size = job.size;
    mine.settings = Introduction::settings_of(options, costs);
    mine.starter = job_source_name(job.source);
    mine.start_timeout = start_timeout;
    mine.store_closes = access.for_one_meeting;
    ALLRING_ASSIGN_OR_RETURN(peers, meet(access, mine, job, deadline));
  }
  endpoint->set_peers(std::move(peers));
  auto session =
      std::make_unique<SocketSession>(options, costs, std::move(job), std::move(endpoint));
  warn_of_guessable_secret(*session);
  ALLRING_RETURN_IF_ERROR(session->make_arena(deadline));
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace allring
