#include "collectives/algorithm/push.h"

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/push_pipeline.h"

namespace allring {

namespace {

bool supports(const CollectiveArgs&, Group& group) { return shares_memory(group); }

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  PushPipeline pipeline(args, group, deadline);
  ALLRING_RETURN_IF_ERROR(pipeline.begin());
  return pipeline.finish();
}

double cost_us(const CollectiveArgs& args, Group& group) {
  const MemoryCost memory = memory_cost(group);
  const double blocks = 1.0 + args.bytes() / group.host_memory()->slot_bytes();
  return 2.0 * blocks * memory.flag_us * (group.size() - 1) +
         2.0 * args.bytes() * (group.size() - 1) / group.size() * memory.us_per_byte;
}

}  // namespace

constinit const Algorithm kPushAllreduce{"push",  CollectiveKind::kAllreduce, supports, run,
                                         cost_us, /*in_rank_order=*/true};

}  // namespace allring
