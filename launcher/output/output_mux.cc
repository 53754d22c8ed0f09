#include "launcher/output/output_mux.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <utility>

namespace allring {

namespace {

constexpr std::size_t kLongestRemembered = 1000;

/// What a terminal would show of a line: what follows the last \r that is not its end.
std::string_view visible(std::string_view line) {
  std::size_t end = line.size();
  while (end > 0 && line[end - 1] == '\r') --end;
  const std::size_t carriage_return = line.substr(0, end).rfind('\r');
  return carriage_return == std::string_view::npos ? line : line.substr(carriage_return + 1);
}

}  // namespace

std::string format_time(std::int64_t time_us) {
  const std::time_t seconds = static_cast<std::time_t>(time_us / 1000000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%03d",
                static_cast<int>(time_us % 1000000 / 1000));
  return text;
}

std::string OutputMux::prefix(int rank, OutputStream stream) {
  return "[" + std::to_string(rank) +
         (stream == OutputStream::kStdout ? "]<stdout>:" : "]<stderr>:");
}

std::string OutputMux::full_prefix(int rank, OutputStream stream, std::int64_t time_us) const {
  return (options_.timestamps ? format_time(time_us) : "") + prefix(rank, stream);
}

std::string OutputMux::feed(int rank, OutputStream stream, std::string_view bytes,
                            std::int64_t time_us) {
  Source& source = sources_[{rank, stream}];
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 8);

  std::string prefix = full_prefix(rank, stream, time_us);
  std::string joined;  // the first line with what was there of it
  std::string_view recent[kLastLines];
  std::size_t lines = 0;
  for (std::size_t newline; (newline = bytes.find('\n')) != std::string_view::npos; ++lines) {
    std::string_view line = bytes.substr(0, newline);
    bytes.remove_prefix(newline + 1);
    if (lines == 0 && !source.unfinished.empty()) {
      joined = std::exchange(source.unfinished, {});
      joined += line;
      line = joined;
      text += full_prefix(rank, stream, source.unfinished_time_us);
    } else {
      text += prefix;
    }
    text += options_.overwrite_at_carriage_return ? visible(line) : line;
    text += '\n';
    recent[lines % kLastLines] = line;
  }
  for (std::size_t i = lines - std::min(lines, kLastLines); i < lines; ++i)
    remember(recent[i % kLastLines], &source);

  if (!bytes.empty()) {
    if (source.unfinished.empty()) source.unfinished_time_us = time_us;
    prefix = full_prefix(rank, stream, source.unfinished_time_us);
    const bool progress = bytes.find('\r') != std::string_view::npos;
    source.unfinished += bytes;
    bound(prefix, progress, &source.unfinished, &text);
  }
  return text;
}

void OutputMux::bound(const std::string& prefix, bool progress, std::string* unfinished,
                      std::string* text) const {
  if (progress && options_.overwrite_at_carriage_return) {
    *unfinished = visible(*unfinished);
  } else if (progress && unfinished->size() > kLongestProgress) {
    const std::size_t shown = unfinished->rfind('\r') + 1;
    *text += prefix + unfinished->substr(0, shown) + '\n';
    unfinished->erase(0, shown);
  }
  if (unfinished->size() > kLongestLine) {
    *text += prefix + *unfinished + '\n';
    unfinished->clear();
  }
}

std::string OutputMux::close(int rank, OutputStream stream) {
  auto found = sources_.find({rank, stream});
  if (found == sources_.end() || found->second.unfinished.empty()) return "";
  return feed(rank, stream, "\n", found->second.unfinished_time_us);
}

std::string_view OutputMux::unfinished(int rank, OutputStream stream) const {
  auto found = sources_.find({rank, stream});
  return found == sources_.end() ? std::string_view() : visible(found->second.unfinished);
}

std::vector<std::string> OutputMux::last_lines(int rank, OutputStream stream) const {
  auto found = sources_.find({rank, stream});
  if (found == sources_.end()) return {};
  return {found->second.last_lines.begin(), found->second.last_lines.end()};
}

void OutputMux::remember(std::string_view line, Source* source) {
  line = visible(line);
  if (line.size() > kLongestRemembered) line = line.substr(0, kLongestRemembered);
  if (source->last_lines.size() == kLastLines) source->last_lines.pop_front();
  source->last_lines.emplace_back(line);
}

}  // namespace allring
