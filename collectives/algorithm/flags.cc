#include "collectives/algorithm/flags.h"

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/slot_protocol.h"

namespace allring {

namespace {

bool supports(const CollectiveArgs&, Group& group) { return shares_memory(group); }

Status run(const CollectiveArgs&, Group& group, Deadline deadline) {
  HostMemory& memory = *group.host_memory();
  const auto raised = static_cast<std::uint32_t>(++memory.sequence(kBarrierSequence));
  memory.post(kBarrierFlag, raised);
  for (Rank rank = 0; rank < group.size(); ++rank) {
    if (rank != group.rank())
      ALLRING_RETURN_IF_ERROR(memory.wait_at_least(kBarrierFlag, rank, raised, deadline));
  }
  return {};
}

double cost_us(const CollectiveArgs&, Group& group) {
  return memory_cost(group).flag_us * (group.size() - 1);
}

}  // namespace

constinit const Algorithm kFlagsBarrier{"flags", CollectiveKind::kBarrier, supports, run, cost_us};

}  // namespace allring
