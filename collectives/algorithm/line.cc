#include "collectives/algorithm/line.h"

#include <cstring>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/line_exchange.h"

namespace allring {

namespace {

bool supports(const CollectiveArgs& args, Group& group) {
  return shares_memory(group) && args.bytes() <= LineExchange::kPayloadBytes;
}

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  LineExchange exchange(*group.host_memory());
  if (args.count > 0) std::memcpy(exchange.payload(), args.input, args.bytes());
  exchange.announce();

  const void* sources[kMostHostRanks];
  for (Rank rank = 0; rank < group.size(); ++rank) {
    sources[rank] = args.input;
    if (rank == group.rank()) continue;
    ALLRING_RETURN_IF_ERROR(exchange.await(rank, deadline));
    sources[rank] = exchange.payload(rank);
  }
  void* output = args.output;
  reduce({&output, 1}, {sources, static_cast<std::size_t>(group.size())}, args.count,
         args.reduction);
  return {};
}

double cost_us(const CollectiveArgs&, Group& group) {
  return memory_cost(group).line_us * (group.size() - 1);
}

}  // namespace

constinit const Algorithm kLineAllreduce{"line",  CollectiveKind::kAllreduce, supports, run,
                                         cost_us, /*in_rank_order=*/true};

}  // namespace allring
