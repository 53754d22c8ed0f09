#pragma once

#include <span>
#include <string>
#include <string_view>

namespace allring::bench {

/// One thing that hvdbench can do, named by its first argument. Adding one is a file pair with the
/// code and a row in subcommand.cc.
struct Subcommand {
  std::string_view name;
  std::string_view summary;  ///< for --help
  /// argv[0] is the program's name, argv[1] what follows the subcommand's. @return the exit status.
  int (*run)(int argc, char** argv);
};

/// All but the collectives, which are what hvdbench measures when no subcommand is named.
std::span<const Subcommand> subcommands();

/// Null if there is none of this name.
const Subcommand* find_subcommand(std::string_view name);

/// Their names and summaries, for --help.
std::string list_of_subcommands();

}  // namespace allring::bench
