#pragma once

#include "collectives/base/status.h"
#include "launcher/arguments.h"
#include "launcher/environment.h"
#include "launcher/placement.h"

namespace allring {

/// Runs a job: starts the agents, has them start the ranks, shows their output, passes signals on,
/// and sees to it that everything has ended before it returns.
///
/// To be called on the process's first thread, before any other exists; blocks for as long as the
/// job runs.
/// @return the exit code of the job: of the rank that failed first, 128 + signal where a signal
///         ended it or us, 2 for input that cannot be run.
int run_driver(const Arguments& arguments, const Placement& placement,
               const Environment& environment);

}  // namespace allring
