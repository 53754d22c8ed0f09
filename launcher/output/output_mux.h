#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace allring {

enum class OutputStream { kStdout, kStderr };

/// Makes one text of what many ranks write: whole lines, each after a prefix that says whose it is,
/// never one line inside another. Pure; bytes are not looked at but for \n and \r and are passed on
/// unchanged. Thread-compatible.
class OutputMux {
 public:
  struct Options {
    bool timestamps = false;
    /// A \r overwrites what stands before it in its line, as it does on a terminal; else lines with
    /// \r are kept whole like any other.
    bool overwrite_at_carriage_return = false;
  };

  explicit OutputMux(Options options) : options_(options) {}

  /// @param time_us of the bytes, microseconds since 1970.
  /// @return the lines that `bytes` completes, with prefixes; may be empty. The rest is kept for
  ///         later; to bound memory, a line of more than kLongestLine bytes is ended early, and one
  ///         of more than kLongestProgress bytes after a \r in it.
  std::string feed(int rank, OutputStream stream, std::string_view bytes, std::int64_t time_us);

  /// The stream has ended: what is left, as a line that is ended with \n.
  std::string close(int rank, OutputStream stream);

  /// The unfinished line of a stream, without prefix and without what is overwritten.
  std::string_view unfinished(int rank, OutputStream stream) const;

  /// The last lines that a stream has written, without prefix, at most kLastLines.
  std::vector<std::string> last_lines(int rank, OutputStream stream) const;

  static std::string prefix(int rank, OutputStream stream);

  static constexpr std::size_t kLongestLine = 16 << 20;
  static constexpr std::size_t kLongestProgress = 64 << 10;
  static constexpr std::size_t kLastLines = 10;

 private:
  struct Source {
    std::string unfinished;
    std::int64_t unfinished_time_us = 0;
    std::deque<std::string> last_lines;
  };

  std::string full_prefix(int rank, OutputStream stream, std::int64_t time_us) const;
  void bound(const std::string& prefix, bool progress, std::string* unfinished,
             std::string* text) const;
  static void remember(std::string_view line, Source* source);

  const Options options_;
  std::map<std::pair<int, OutputStream>, Source> sources_;
};

/// Local time, "2026-01-31T12:34:56.789".
std::string format_time(std::int64_t time_us);

}  // namespace allring
