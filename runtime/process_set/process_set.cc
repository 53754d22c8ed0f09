#include "runtime/process_set/process_set.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "collectives/base/check.h"
#include "collectives/base/thread.h"
#include "runtime/request/request_text.h"
#include "runtime/request/validate.h"
#include "runtime/strategy/synchronous_allreduce.h"

namespace allring {

namespace {

nanoseconds from_seconds(double value) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(value));
}

Controller::Settings controller_settings(const Options& options,
                                         const ProcessSet::Settings& settings) {
  Controller::Settings result;
  result.epoch = settings.epoch;
  result.group.members = settings.members;
  result.group.descriptions = settings.descriptions;
  result.group.cache_capacity = static_cast<std::size_t>(options.cache_capacity);
  result.group.fusion = {options.fusion_threshold_bytes, options.fusion_tensor_bytes};
  result.group.stall = options.stall_check_disable
                           ? StallLimits::never()
                           : StallLimits{from_seconds(options.stall_warning_seconds),
                                         from_seconds(options.stall_shutdown_seconds)};
  return result;
}

// Members of a group have to come together, or the coordinator could announce half a group.
Status check_groups(const std::vector<Submission>& submissions) {
  std::unordered_map<std::string_view, std::int32_t> members;
  for (const Submission& submission : submissions)
    if (!submission.request.group.empty()) ++members[submission.request.group];
  for (const Submission& submission : submissions) {
    const Request& request = submission.request;
    const auto expected = request.group.empty() ? 0 : members[request.group];
    if (request.group_size != expected)
      return Status::invalid_argument(tensor_text(request) + ": says that group \"" +
                                      request.group + "\" has " +
                                      std::to_string(request.group_size) + " members, but " +
                                      std::to_string(expected) + " were submitted together");
  }
  return {};
}

}  // namespace

ProcessSet::ProcessSet(Settings settings, Links links)
    : settings_(std::move(settings)),
      rank_(links.control->rank()),
      channel_(std::move(links.control)),
      queue_([this] { channel_->wake(); }) {}

Result<std::unique_ptr<ProcessSet>> ProcessSet::start(const Options& options, Settings settings,
                                                      Links links) {
  ALLRING_CHECK(links.control != nullptr && !links.lanes.empty() &&
                    links.control->size() == static_cast<int>(settings.members.size()) &&
                    settings.descriptions.size() == settings.members.size(),
                "a process set has a control channel, lanes, and a description of each member");
  ALLRING_ASSIGN_OR_RETURN(ForcedAlgorithms forced, ForcedAlgorithms::parse(options.algorithm));
  forced.set_deterministic(options.deterministic);
  Clock& clock = *settings.clock;
  std::vector<std::unique_ptr<LaneNetwork>> lanes = std::move(links.lanes);
  const bool shared_memory = lanes.front()->group().host_memory() != nullptr;
  std::unique_ptr<ProcessSet> set(new ProcessSet(std::move(settings), std::move(links)));
  set->controller_ = std::make_unique<Controller>(
      *set->channel_, controller_settings(options, set->settings_), clock.now());
  set->executor_ = Executor::start(
      {std::move(forced), std::make_shared<SynchronousAllreduce>(), set->settings_.single_host},
      std::move(lanes), set->queue_, [channel = set->channel_.get()] { channel->wake(); });
  set->shared_memory_ = shared_memory;
  set->lanes_ = set->executor_->lanes();
  set->cycle_ = std::make_unique<Cycle>(set->queue_, *set->channel_, *set->controller_,
                                        *set->executor_, clock);
  // The system keeps 15 characters of a thread's name.
  const std::string name = ("allring-coord" + std::to_string(set->id())).substr(0, 15);
  set->coordinator_ = start_thread(name, [cycle = set->cycle_.get()] {
    while (!cycle->finished()) cycle->run_once(kNoDeadline);
  });
  return set;
}

ProcessSet::~ProcessSet() { shutdown(); }

Result<Rank> ProcessSet::place_of(Rank job_rank) const {
  const std::vector<Rank>& members = settings_.members;
  const auto place = std::lower_bound(members.begin(), members.end(), job_rank);
  if (place == members.end() || *place != job_rank) {
    return Status::invalid_argument("rank " + std::to_string(job_rank) + " is not among the " +
                                    std::to_string(size()) + " ranks of process set " +
                                    std::to_string(id()));
  }
  return static_cast<Rank>(place - members.begin());
}

std::string ProcessSet::next_name(CollectiveKind kind) {
  const std::uint64_t number = counters_[static_cast<std::size_t>(kind)].fetch_add(1);
  return std::string(collective_kind_name(kind)) + ".noname." + std::to_string(number);
}

Status ProcessSet::submit(std::vector<Submission> submissions) {
  for (const Submission& submission : submissions)
    ALLRING_RETURN_IF_ERROR(validate(submission.request, size()));
  ALLRING_RETURN_IF_ERROR(check_groups(submissions));
  return queue_.push(std::move(submissions));
}

void ProcessSet::shutdown() {
  std::lock_guard lock(shutdown_mutex_);
  if (coordinator_.joinable()) {
    cycle_->request_leave();
    coordinator_.join();
  }
  if (!executor_) return;
  const Status gone = Status::aborted(settings_.descriptions[rank_] + " has shut down");
  queue_.close(gone);
  executor_->abort(gone);
  executor_->stop();
  cycle_->complete_rest(gone);
  cycle_.reset();
  executor_.reset();
  controller_.reset();
  // Callers cannot reach it any more: the queue is closed.
  channel_.reset();
}

}  // namespace allring
