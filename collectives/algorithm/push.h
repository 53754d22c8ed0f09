#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "push": private buffers through shared-memory slots, block by block, three blocks under way.
/// Every rank packs what it has of a block into its own slot, except its own slice; the owner of a
/// slice reads it in all slots and writes the sum into all of them at once (and its own straight
/// into the output); unpacking reads one's own slot only. So no line is written while another core
/// holds a copy that it has read, which is what makes pulling slow on some processors.
///
/// 2 steps per block, 1 + 1 / blocks of them in the critical path; each rank copies S (n - 1) / n
/// bytes in and out, reads S and writes S. One pass adds all inputs in the order of ranks: one
/// rounding.
extern const Algorithm kPushAllreduce;

}  // namespace allring
