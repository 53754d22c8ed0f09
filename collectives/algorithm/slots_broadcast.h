#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "slots": the root packs block after block into its slots, as far ahead as there are buffers, and
/// all others copy them out at the same time. 1 step per block; the root copies S bytes in, every
/// other rank S out.
extern const Algorithm kSlotsBroadcast;

}  // namespace allring
