#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "line": up to 56 bytes travel in the cache line that also holds their sequence number, so that
/// one transfer between cores brings both, and every rank adds up all lines. Two lines per rank
/// take turns (slot_protocol.h). 1 step, n - 1 lines read by each rank.
extern const Algorithm kLineAllreduce;

}  // namespace allring
