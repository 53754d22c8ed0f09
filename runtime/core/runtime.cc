#include "runtime/core/runtime.h"

#include <utility>

#include "runtime/execution/inproc_lane_network.h"
#include "runtime/negotiation/inproc_control_channel.h"

namespace allring {

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
}

}  // namespace allring
