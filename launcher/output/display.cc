#include "launcher/output/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace allring {

namespace {

/// Dumb terminals cannot erase a line; they are treated as files.
bool is_capable_terminal(int fd) {
  const char* kind = std::getenv("TERM");
  return ::isatty(fd) != 0 && kind != nullptr && std::strcmp(kind, "dumb") != 0;
}

int terminal_columns() {
  winsize size{};
  for (int fd : {STDERR_FILENO, STDOUT_FILENO}) {
    if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return 80;
}

}  // namespace

Display::Display(Options options, std::function<void(OutputStream, Status)> failed)
    : terminal_{is_capable_terminal(STDOUT_FILENO), is_capable_terminal(STDERR_FILENO)},
      mux_{OutputMux({options.timestamps, terminal_[0]}),
           OutputMux({options.timestamps, terminal_[1]})},
      live_line_(terminal_columns()),
      files_(std::move(options.files)),
      writer_(std::move(failed)) {}

void Display::feed(int rank, OutputStream stream, std::string_view bytes, std::int64_t time_us,
                   std::function<void()> shown) {
  if (files_) {
    if (Status status = files_->write(rank, stream, bytes); !status.ok())
      say("hvdrun: " + status.message() + "; the rest of it is not written\n");
  }
  std::string lines = mux(stream).feed(rank, stream, bytes, time_us);
  if (is_terminal(stream)) {
    if (!mux(stream).unfinished(rank, stream).empty()) {
      live_ = {rank, stream};
    } else if (live_ == std::pair(rank, stream)) {
      live_.reset();
    }
  }
  put(stream, std::move(lines), std::move(shown));
}

void Display::close(int rank) {
  for (OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr}) {
    if (live_ == std::pair(rank, stream)) live_.reset();
    put(stream, mux(stream).close(rank, stream), {});
  }
}

void Display::say(const std::string& lines) { put(OutputStream::kStderr, lines, {}); }

void Display::put(OutputStream stream, std::string lines, std::function<void()> shown) {
  if (is_terminal(stream)) {
    std::string line;
    if (live_)
      line = OutputMux::prefix(live_->first, live_->second) +
             std::string(mux(live_->second).unfinished(live_->first, live_->second));
    lines = live_line_.show(lines, line);
  }
  if (!lines.empty()) {
    writer_.write(stream, std::move(lines), std::move(shown));
  } else if (shown) {
    shown();
  }
}

std::vector<std::string> Display::last_lines(int rank) const {
  std::vector<std::string> lines =
      mux(OutputStream::kStderr).last_lines(rank, OutputStream::kStderr);
  if (lines.empty()) lines = mux(OutputStream::kStdout).last_lines(rank, OutputStream::kStdout);
  return lines;
}

}  // namespace allring
