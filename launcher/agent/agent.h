#pragma once

#include "launcher/environment.h"

namespace allring {

/// Runs `hvdrun --agent`: starts and watches the ranks of this host for the driver at the other end
/// of standard input and output, until the driver ends the job or is gone. Nothing that was started
/// here outlives the call, and where the agent itself is killed, the kernel kills the ranks.
///
/// To be called on the process's first thread, before any other exists.
/// @param environment of this host, for ranks.
/// @return the process's exit code: 0 if the driver ended the job.
int run_agent(const Environment& environment);

}  // namespace allring
