#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "slots": every rank packs the next piece of its own into its slot, all copy all pieces out. 1
/// step per block; each rank copies S / n bytes in and S out.
extern const Algorithm kSlotsAllgather;

}  // namespace allring
