#include "collectives/algorithm/ring.h"

#include <cstring>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/ring_pipeline.h"
#include "collectives/algorithm/rounding.h"
#include "collectives/schedule/chunks.h"

namespace allring {

namespace {

bool supports_reducing(const CollectiveArgs& args, Group& group) {
  return group.size() == 2 || (group.size() > 2 && allows_partial_results(args.reduction));
}

bool supports_gathering(const CollectiveArgs&, Group& group) { return group.size() >= 2; }

Status allreduce(const CollectiveArgs& args, Group& group, Deadline deadline) {
  const auto counts = even_counts(args.count, group.size());
  const RingTask task{.reduces = true,
                      .gathers = true,
                      .reduction = args.reduction,
                      .counts = counts,
                      .input = static_cast<const std::byte*>(args.input),
                      .output = static_cast<std::byte*>(args.output)};
  return run_ring(task, group, deadline);
}

Status reduce_scatter(const CollectiveArgs& args, Group& group, Deadline deadline) {
  const RingTask task{.reduces = true,
                      .gathers = false,
                      .reduction = args.reduction,
                      .counts = args.counts,
                      .input = static_cast<const std::byte*>(args.input),
                      .output = static_cast<std::byte*>(args.output)};
  return run_ring(task, group, deadline);
}

Status allgather(const CollectiveArgs& args, Group& group, Deadline deadline) {
  auto* output = static_cast<std::byte*>(args.output);
  const std::size_t element = element_bytes(args.reduction.dtype);
  const std::size_t own_bytes = args.counts[group.rank()] * element;
  std::byte* own = output + offsets_of(args.counts)[group.rank()] * element;
  if (own != args.input && own_bytes > 0) std::memcpy(own, args.input, own_bytes);
  const RingTask task{.reduces = false,
                      .gathers = true,
                      .reduction = args.reduction,
                      .counts = args.counts,
                      .input = nullptr,
                      .output = output};
  return run_ring(task, group, deadline);
}

double allreduce_cost_us(const CollectiveArgs& args, Group& group) {
  return ring_cost_us(args.bytes(), 2, group) + args.bytes() * reduce_us_per_byte(group);
}
double reduce_scatter_cost_us(const CollectiveArgs& args, Group& group) {
  return ring_cost_us(args.bytes(), 1, group) + args.bytes() * reduce_us_per_byte(group);
}
double allgather_cost_us(const CollectiveArgs& args, Group& group) {
  return ring_cost_us(args.bytes(), 1, group);
}

}  // namespace

constinit const Algorithm kRingAllreduce{"ring", CollectiveKind::kAllreduce, supports_reducing,
                                         allreduce, allreduce_cost_us};
constinit const Algorithm kRingReduceScatter{"ring", CollectiveKind::kReduceScatter,
                                             supports_reducing, reduce_scatter,
                                             reduce_scatter_cost_us};
constinit const Algorithm kRingAllgather{"ring", CollectiveKind::kAllgather, supports_gathering,
                                         allgather, allgather_cost_us};

}  // namespace allring
