#pragma once

#include <string>
#include <string_view>

namespace allring {

/// The last line of a terminal, where the unfinished line of one rank is shown while it changes: a
/// progress bar, or a question without its newline. Pure; thread-compatible.
class LiveLine {
 public:
  /// @param columns of the terminal.
  explicit LiveLine(int columns) : columns_(columns) {}

  /// @return what to write to the terminal so that it shows `lines` (whole, may be empty) above
  ///         a live line `line` (cut to the terminal's width; empty for none).
  std::string show(std::string_view lines, std::string_view line);

 private:
  const int columns_;
  std::string shown_;
};

}  // namespace allring
