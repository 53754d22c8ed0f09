#include "launcher/output/live_line.h"

namespace allring {

namespace {

/// The part of a line that takes less than `columns` columns, without control characters. Every
/// code point counts as one column.
std::string cut(std::string_view line, int columns) {
  std::string result;
  int used = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte == 0x1b && i + 1 < line.size() && line[i + 1] == '[') {
      // A colour or the like takes no column; only colours are let through.
      std::size_t end = i + 2;
      while (end < line.size() && (line[end] < '@' || line[end] > '~')) ++end;
      if (end < line.size() && line[end] == 'm') result += line.substr(i, end - i + 1);
      i = end;
      continue;
    }
    if (byte < 0x20 || byte == 0x7f) continue;
    const bool continues_code_point = (byte & 0xc0) == 0x80;
    if (!continues_code_point && ++used >= columns) break;
    result += line[i];
  }
  return result;
}

}  // namespace

std::string LiveLine::show(std::string_view lines, std::string_view line) {
  const std::string now = cut(line, columns_);
  if (lines.empty() && now == shown_) return "";
  std::string text;
  if (!shown_.empty()) text += "\r\x1b[K";
  text += lines;
  text += now;
  if (now.find('\x1b') != std::string::npos) text += "\x1b[0m";
  shown_ = now;
  return text;
}

}  // namespace allring
