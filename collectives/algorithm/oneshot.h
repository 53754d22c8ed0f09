#pragma once

#include "collectives/algorithm/algorithm.h"

namespace allring {

/// "oneshot": every rank publishes its input in its slot, and every rank adds up all slots. 1 step;
/// each rank writes S bytes and reads n S. For payloads whose bytes cost less than a second
/// hand-over.
extern const Algorithm kOneshotAllreduce;

}  // namespace allring
