#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "direct": buffers that lie in the arena (transport/arena.h) are reduced where they are. Each
/// rank adds one slice of all ranks' inputs and writes the sum into all ranks' outputs, in place or
/// not; nothing is copied. Ranks tell each other in one cache line where their buffers are; if one
/// of them has private ones, the rest goes as in "push", of which the first block is packed
/// meanwhile.
///
/// 2 steps: all inputs are there, all outputs are complete. Each rank reads S and writes S bytes.
/// One pass adds all inputs in the order of ranks: one rounding. After a failure a peer that has
/// not noticed yet may still write into the outputs.
extern const Algorithm kDirectAllreduce;

}  // namespace allring
