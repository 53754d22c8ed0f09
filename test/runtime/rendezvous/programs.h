#pragma once

#include <string>
#include <utility>
#include <vector>

namespace allring {

/// A program that a test runs. Thread-compatible.
class Program {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  /// Starts `arguments`, the first one being a path or a name to be looked for in PATH, in a
  /// process group of its own, with this environment and nothing else but PATH and HOME.
  Program(const std::vector<std::string>& arguments, const Environment& environment);
  /// Kills what is left of the process group.
  ~Program();
  Program(Program&& other) noexcept;

  struct Outcome {
    int exit_code = -1;  ///< 128 + signal, if one ended it
    std::string output;  ///< stdout and stderr
  };
  /// Blocks until the program has ended, or kills it after a minute.
  Outcome finish();

 private:
  int pid_ = -1;
  int output_ = -1;
};

}  // namespace allring
