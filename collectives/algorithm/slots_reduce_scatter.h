#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "slots": every rank packs the others' parts of a block into its own slot; each rank reads its
/// part in all slots, adds it to its own input in one pass, in the order of ranks, and writes the
/// output. 1 step per block; each rank copies S (n - 1) / n bytes, reads S and writes S / n.
extern const Algorithm kSlotsReduceScatter;

}  // namespace allring
