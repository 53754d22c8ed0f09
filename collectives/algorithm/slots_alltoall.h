#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "slots": every rank's slot is divided among the receivers; the first block also tells how many
/// blocks the rank has to send, and all go on for the largest number. 1 step per block; each rank
/// copies in what it sends and out what it receives.
extern const Algorithm kSlotsAlltoall;

}  // namespace allring
