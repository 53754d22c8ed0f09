#pragma once

#include <set>
#include <string>
#include <vector>

#include "collectives/base/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace allring {

/// A command line cut in two: our own options, spelled as CLI11 expects them, and the command.
struct SplitCommandLine {
  std::vector<std::string> options;
  std::set<const CLI::Option*> given;  ///< which of them there are
  std::vector<std::string> command;
};

/// Cuts at the first word that is neither an option of `app` nor the value of one, or after "--".
/// Everything from there on is the command and is not looked at. Before it, the spellings of the
/// peers are understood: one dash before a long name (-np, -hostfile), _ for - in names.
/// @param words the arguments without the program's name.
/// @return kInvalidArgument for an option that `app` does not know or whose value is missing.
Result<SplitCommandLine> split_command_line(const CLI::App& app,
                                            const std::vector<std::string>& words);

/// Splits at blanks as a shell would, with '...', "..." and backslash, expanding nothing.
/// @return kInvalidArgument for a quotation without its end.
Result<std::vector<std::string>> split_words(const std::string& text);

}  // namespace allring
