#include "runtime/core/runtime.h"

#include <numeric>
#include <utility>

#include "runtime/execution/inproc_lane_network.h"
#include "runtime/negotiation/inproc_control_channel.h"

namespace allring {

namespace {

Runtime::Place place_in(const Session& session) {
  const JobDescription& job = session.job();
  Runtime::Place place;
  place.rank = job.rank;
  place.size = job.size;
  place.local_rank = job.local_rank;
  place.local_size = job.local_size;
  place.cross_rank = job.cross_rank;
  place.cross_size = job.cross_size;
  place.homogeneous = session.topology().homogeneous();
  return place;
}

ProcessSet::Settings settings_of_all(const Session& session) {
  ProcessSet::Settings global;
  global.members.resize(session.job().size);
  std::iota(global.members.begin(), global.members.end(), 0);
  for (Rank rank : global.members) global.descriptions.push_back(session.describe(rank));
  global.single_host = session.topology().hosts() == 1;
  return global;
}

Result<ProcessSet::Links> connect(Session& session, const ProcessSet::Settings& settings,
                                  const Options& options) {
  const Deadline deadline = deadline_after(std::chrono::duration_cast<nanoseconds>(
      std::chrono::duration<double>(options.start_timeout_seconds)));
  ProcessSet::Links links;
  ALLRING_ASSIGN_OR_RETURN(links.control, session.control(settings.id, settings.members, deadline));
  for (int lane = 0; lane < static_cast<int>(options.lanes); ++lane) {
    ALLRING_ASSIGN_OR_RETURN(std::unique_ptr<LaneNetwork> network,
                             session.lane(settings.id, lane, settings.members, deadline));
    links.lanes.push_back(std::move(network));
  }
  return links;
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::join(const Options& options, const JobDescription& job) {
  if (job.size == 1) return start_alone(options, job.hostname);
  ALLRING_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::join(options, job));
  ProcessSet::Settings global = settings_of_all(*session);
  ALLRING_ASSIGN_OR_RETURN(ProcessSet::Links links, connect(*session, global, options));
  ALLRING_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime,
                           start(options, place_in(*session), std::move(global), std::move(links)));
  runtime->arena_ = session->arena();
  runtime->session_ = std::move(session);
  return runtime;
}

Result<std::unique_ptr<Runtime>> Runtime::start_alone(const Options& options,
                                                      const std::string& hostname) {
  ProcessSet::Settings global;
  global.members = {0};
  global.descriptions = {"rank 0 (host " + hostname + ")"};
  ProcessSet::Links links;
  links.control = InprocControlHub(1).channel(0);
  for (int lane = 0; lane < static_cast<int>(options.lanes); ++lane)
    links.lanes.push_back(
        std::move(make_inproc_lane_networks(Topology::single_host(1), false).front()));
  return start(options, Place(), std::move(global), std::move(links));
}

Result<std::unique_ptr<Runtime>> Runtime::start(const Options& options, Place place,
                                                ProcessSet::Settings global,
                                                ProcessSet::Links links) {
  std::unique_ptr<Runtime> runtime(new Runtime(options, place));
  runtime->description_ = global.descriptions[place.rank];
  ALLRING_ASSIGN_OR_RETURN(std::unique_ptr<ProcessSet> set,
                           ProcessSet::start(options, std::move(global), std::move(links)));
  runtime->sets_.push_back(std::move(set));
  return runtime;
}

Runtime::~Runtime() { shutdown(); }

Result<ProcessSet*> Runtime::process_set(std::int64_t id) const {
  for (const std::unique_ptr<ProcessSet>& set : sets_)
    if (set->id() == id) return set.get();
  return Status::invalid_argument("there is no process set " + std::to_string(id) +
                                  " on this rank; 0 is all ranks");
}

void Runtime::shutdown() {
  for (const std::unique_ptr<ProcessSet>& set : sets_) set->shutdown();
  // Now, and not with this object, which a thread inside of a call may keep for a while.
  std::lock_guard lock(shutdown_mutex_);
  session_.reset();
}

}  // namespace allring
