#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "collectives/base/clock.h"

namespace allring {

// A driver and an agent are "child subreapers": whatever their children start and abandon becomes
// their own child, so that everything the job ever started stays among their descendants.

/// Makes the calling process a child subreaper.
void adopt_orphans();

/// Every living process that descends from `root` now, `root` itself left out. Zombies, which
/// nothing can be sent to, are left out too. Reads /proc; costs about 10 us for each process of
/// the machine.
std::vector<pid_t> descendants(pid_t root);

/// Sends `signal` to each process that descends from `root`. What is forked meanwhile may miss it.
void signal_descendants(pid_t root, int signal);

/// Called with the process id and wait status of each child that has been reaped.
using Reaped = std::function<void(pid_t pid, int wait_status)>;

/// Reaps the children of this process that have ended. Does not block.
/// @return whether any child is left.
bool reap_children(const Reaped& reaped);

/// Ends with SIGKILL and reaps everything that descends from this process, also what is forked
/// meanwhile. Blocks until nothing is left or the deadline has passed, which happens only for
/// processes that the kernel itself holds up.
/// @param spare children that are left alone, with what descends from them.
/// @return whether nothing but the spared is left.
bool end_descendants(const std::vector<pid_t>& spare, Deadline deadline, const Reaped& reaped);

/// Ends with SIGKILL every process of ours whose environment has the entry NAME=value, whosever
/// child it is. Blocks until none is left or the deadline has passed.
/// @return whether none is left.
bool end_processes_with(const std::string& entry, Deadline deadline);

}  // namespace allring
