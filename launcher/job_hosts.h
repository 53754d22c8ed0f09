#pragma once

#include "collectives/base/status.h"
#include "launcher/arguments.h"
#include "launcher/placement.h"

namespace allring {

/// From what was asked for to who runs where: reads -H and the host files, finds out which hosts
/// are this one, and places the ranks. Without hosts, all ranks run here.
/// @return kInvalidArgument in one line.
Result<Placement> place_job(const Arguments& arguments);

}  // namespace allring
