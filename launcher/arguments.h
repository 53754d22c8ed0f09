#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/base/status.h"
#include "launcher/environment.h"

namespace allring {

/// What hvdrun was asked to do. Each option is given on the command line or by the environment
/// variable HVDRUN_<NAME>; the command line wins.
struct Arguments {
  // Where ranks run.
  std::optional<int> num_proc;
  std::vector<std::string> hosts;  ///< each as given to one -H
  std::vector<std::string> hostfiles;
  bool oversubscribe = false;
  std::string working_directory;  ///< empty: the current one
  std::string network_interfaces;

  // How other hosts are reached.
  int ssh_port = 0;  ///< 0: ssh's own choice
  std::string ssh_identity_file;
  std::vector<std::string> ssh_args;
  std::string remote_hvdrun;

  // What ranks get and how they end.
  std::vector<std::string> environment;  ///< -x, as NAME=value
  double start_timeout_seconds = 30;
  bool start_timeout_given = false;
  double grace_seconds = 5;

  // Output.
  std::string output_directory;
  bool timestamps = false;
  bool verbose = false;

  bool dry_run = false;
  std::vector<std::string> command;

  std::vector<std::string> warnings;  ///< one line each, for the user
};

/// What to print instead of running, for --help and --version.
struct PrintAndExit {
  std::string text;
};

struct ParsedArguments {
  Arguments arguments;
  std::optional<PrintAndExit> print;
};

/// @param words the command line without the program's name.
/// @param environment of this process: HVDRUN_* and the values of `-x NAME`.
/// @return kInvalidArgument in one line that says what to do.
Result<ParsedArguments> parse_arguments(const std::vector<std::string>& words,
                                        const Environment& environment);

/// The table of options for docs/launching.md: a line of Markdown for each.
std::string options_table();

}  // namespace allring
