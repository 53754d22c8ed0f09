#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/output/live_line.h"
#include "launcher/output/output_mux.h"
#include "launcher/output/output_writer.h"
#include "launcher/output/rank_files.h"

namespace allring {

/// Everything that a job shows: the ranks' lines, hvdrun's own, and on a terminal the live line.
/// Thread-compatible; what is shown is written by a thread of the OutputWriter.
class Display {
 public:
  struct Options {
    bool timestamps = false;
    std::optional<RankFiles> files;
  };

  /// @param failed as for OutputWriter.
  Display(Options options, std::function<void(OutputStream, Status)> failed);

  /// @param shown called on the writer's thread when the bytes need no more memory.
  void feed(int rank, OutputStream stream, std::string_view bytes, std::int64_t time_us,
            std::function<void()> shown);
  /// A rank's streams have ended.
  void close(int rank);

  /// Lines of hvdrun's own, to standard error.
  void say(const std::string& lines);

  /// The last lines of a rank's standard error, or of its output if it has none.
  std::vector<std::string> last_lines(int rank) const;

  /// As OutputWriter.
  bool flush(Deadline deadline) { return writer_.flush(deadline); }

 private:
  void put(OutputStream stream, std::string lines, std::function<void()> shown);
  bool is_terminal(OutputStream stream) const { return terminal_[stream == OutputStream::kStderr]; }
  OutputMux& mux(OutputStream stream) { return mux_[stream == OutputStream::kStderr]; }
  const OutputMux& mux(OutputStream stream) const { return mux_[stream == OutputStream::kStderr]; }

  const bool terminal_[2];
  OutputMux mux_[2];
  LiveLine live_line_;
  std::optional<std::pair<int, OutputStream>> live_;
  std::optional<RankFiles> files_;
  OutputWriter writer_;
};

}  // namespace allring
