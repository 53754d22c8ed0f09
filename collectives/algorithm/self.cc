#include "collectives/algorithm/self.h"

#include <cstring>

namespace allring {

namespace {

bool supports(const CollectiveArgs&, Group& group) { return group.size() == 1; }

double cost_us(const CollectiveArgs&, Group&) { return 0; }

Status finish(const CollectiveArgs& args, Group&, Deadline) {
  if (args.reduction.finishing()) {
    reduce({&args.output, 1}, {&args.input, 1}, args.count, args.reduction);
  } else if (args.input != args.output && args.count > 0) {
    std::memcpy(args.output, args.input, args.bytes());
  }
  return {};
}

Status copy(const CollectiveArgs& args, Group&, Deadline) {
  if (args.input != args.output && args.count > 0)
    std::memcpy(args.output, args.input, args.bytes());
  return {};
}

Status nothing(const CollectiveArgs&, Group&, Deadline) { return {}; }

}  // namespace

constinit const Algorithm kSelfAllreduce{"self",  CollectiveKind::kAllreduce, supports, finish,
                                         cost_us, /*in_rank_order=*/true};
constinit const Algorithm kSelfReduceScatter{
    "self", CollectiveKind::kReduceScatter, supports, finish, cost_us, /*in_rank_order=*/true};
constinit const Algorithm kSelfAllgather{"self", CollectiveKind::kAllgather, supports, copy,
                                         cost_us};
constinit const Algorithm kSelfBroadcast{"self", CollectiveKind::kBroadcast, supports, nothing,
                                         cost_us};
constinit const Algorithm kSelfAlltoall{"self", CollectiveKind::kAlltoall, supports, copy, cost_us};
constinit const Algorithm kSelfBarrier{"self", CollectiveKind::kBarrier, supports, nothing,
                                       cost_us};

}  // namespace allring
