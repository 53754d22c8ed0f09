#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/algorithm/algorithm.h"
#include "runtime/request/message.h"

namespace allring {

/// What the planner looks at of a tensor: values that are equal on all ranks.
struct PlanItem {
  CollectiveKind kind = CollectiveKind::kAllreduce;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  double prescale = 1.0;
  double postscale = 1.0;
  std::int64_t bytes = 0;  ///< of the whole tensor; only looked at for allreduce
  std::string_view group;  ///< empty: none. Members of a group are neighbours in the list
};

/// Places in the list of items, ascending; more than one only for allreduces that are packed
/// together.
using PlanBatch = std::vector<std::size_t>;

/// Which tensors travel together. Small allreduces of one dtype, op and scales share a batch of up
/// to limits.threshold_bytes, also when others stand between them; a tensor larger than
/// limits.tensor_bytes stays alone within a host, where copying costs more than it saves, while
/// between hosts all that fit are packed. A group of such allreduces stays in one batch if it fits
/// into one. Batches come in the order of their first members. Pure: equal arguments, equal plan.
std::vector<PlanBatch> plan(std::span<const PlanItem> items, const FusionLimits& limits,
                            bool single_host);

}  // namespace allring
