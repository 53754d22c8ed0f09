#pragma once

#include <string>
#include <vector>

#include "collectives/base/status.h"
#include "launcher/hosts.h"

namespace allring {

/// How an agent is brought to life on a host: a program to run here, whose standard input and
/// output become the agent's. Whatever the way, the agent then writes kAgentMarker and speaks gRPC.
struct AgentStarter {
  std::string program;
  std::vector<std::string> argv;
  std::string by_hand;  ///< what a user may try if it fails; empty: nothing
};

/// Runs this very program as the agent.
Result<AgentStarter> local_starter();

struct SshOptions {
  int port = 0;  ///< 0: ssh's own choice
  std::string identity_file;
  std::vector<std::string> arguments;  ///< the user's, before ours: ssh takes the first of a kind
  std::string remote_hvdrun;           ///< empty: the path of this program, else by PATH
};

/// Runs `ssh HOST` with a command that becomes the agent there. Never asks for a password, accepts
/// hosts that are not known yet and refuses those whose key has changed.
/// @param search_path PATH, for finding ssh.
/// @return kInvalidArgument if there is no ssh.
Result<AgentStarter> ssh_starter(const Host& host, const SshOptions& options,
                                 const std::string& search_path);

/// The command for the host's login shell, whichever that is. It writes kAgentMissingMarker and
/// ends with 127 if there is no hvdrun.
/// @param fall_back_to_path whether `path` may be missing if hvdrun is on the host's PATH.
std::string remote_agent_command(const std::string& path, bool fall_back_to_path);

/// "ssh -p 2222 user@host", for a user to try by hand.
std::string ssh_by_hand(const Host& host, const SshOptions& options);

/// One line that says why an agent did not start, and what to do.
/// @param by_hand AgentStarter::by_hand.
/// @param words what the starter wrote to standard error.
/// @param wait_status the starter's end.
Status explain_failed_start(const Host& host, const std::string& by_hand, const std::string& words,
                            int wait_status);
/// The same for a host on which hvdrun was not found.
Status explain_missing_hvdrun(const Host& host, const std::string& remote_hvdrun);

}  // namespace allring
