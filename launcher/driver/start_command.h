#pragma once

#include <string>

#include "launcher/agent.pb.h"
#include "launcher/arguments.h"
#include "launcher/environment.h"
#include "launcher/placement.h"

namespace allring {

/// What a job is known by.
struct JobIdentity {
  std::string id;      ///< [a-z0-9-]+, random, so unique
  std::string secret;  ///< 32 random bytes

  static JobIdentity make();
};

/// What the agent of one host is told about the job. Pure but for the current folder.
/// @param host_index into placement.hosts.
/// @param master_port a free port on the first host.
launcher::DriverCommand start_command(const JobIdentity& job, const Arguments& arguments,
                                      const Placement& placement, std::size_t host_index,
                                      const Environment& environment,
                                      const std::string& master_address, int master_port);

/// Where torch's MASTER_ADDR says that rank 0 is: a name or address that means the first host on
/// every host of the job. May ask the name service.
std::string master_address(const Placement& placement);

}  // namespace allring
