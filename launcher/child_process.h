#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "collectives/base/status.h"

namespace allring {

/// What to run. Strings are bytes: nothing is quoted, expanded or interpreted.
struct ChildCommand {
  std::string program;                   ///< path, see find_program()
  std::vector<std::string> argv;         ///< with argv[0]
  std::vector<std::string> environment;  ///< NAME=value
  std::string working_directory;         ///< empty: the caller's
  int stdin_fd = -1;                     ///< these three become 0, 1 and 2; -1: the caller's own
  int stdout_fd = -1;
  int stderr_fd = -1;
  enum class Group { kProcessGroup, kSession };
  Group group = Group::kProcessGroup;  ///< the child leads a new one of these
  /// Sent to the child when the thread that started it ends; 0 for none.
  int death_signal = 0;
};

/// Starts a child with default dispositions of SIGPIPE and SIGCHLD, an empty signal mask and no
/// descriptors but 0, 1 and 2. Blocks until the child has reached its program (milliseconds), so
/// that failures to exec are known here.
/// @return its process id; kInvalidArgument if the program or the folder cannot be used, naming it
///         with errno's words; kOutOfMemory where a limit on processes or descriptors is hit.
Result<pid_t> start_child(const ChildCommand& command);

/// The path of `name` as execvp would find it: `name` itself if it holds a slash, else the first
/// executable file in the folders of `path`.
/// @param path the child's PATH; empty is the system's default.
/// @param folder the child's working directory, against which relative names count.
/// @return kInvalidArgument in one line that says what is wrong with the name.
Result<std::string> find_program(const std::string& name, std::string_view path,
                                 const std::string& folder);

/// "exit code 3", "signal 9 (Killed)".
std::string describe_wait_status(int wait_status);

/// The exit code a shell gives for it: the code itself or 128 + signal.
int exit_code_of(int wait_status);

}  // namespace allring
