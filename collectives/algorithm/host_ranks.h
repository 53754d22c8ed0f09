#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// More ranks than this on one host do without the shared-memory rows: these keep arrays of one
/// pointer per rank on the stack, because allocating costs as much as a small allreduce.
inline constexpr int kMostHostRanks = 256;

/// What every shared-memory row needs.
inline bool shares_memory(Group& group) {
  return group.size() >= 2 && group.size() <= kMostHostRanks && group.host_memory() != nullptr;
}

}  // namespace allring
