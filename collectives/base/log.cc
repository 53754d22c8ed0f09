// The only file that includes spdlog: it is slow to compile, and its global registry stays unused.
#include "collectives/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <memory>

namespace allring {

namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  return static_cast<spdlog::level::level_enum>(static_cast<int>(level));
}

std::shared_ptr<spdlog::logger> make_logger(LogLevel level, bool hide_time,
                                            const std::string& prefix) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("allring", std::move(sink));
  logger->set_level(to_spdlog(level));
  std::string escaped;
  for (char c : prefix) escaped += c == '%' ? std::string("%%") : std::string(1, c);
  logger->set_pattern((hide_time ? "" : "[%Y-%m-%d %H:%M:%S.%e] ") + std::string("[allring %l] ") +
                      escaped + (escaped.empty() ? "" : " ") + "%v");
  return logger;
}

// Never destroyed: threads may log while the process exits.
std::atomic<std::shared_ptr<spdlog::logger>>& current() {
  static auto* logger =
      new std::atomic<std::shared_ptr<spdlog::logger>>(make_logger(LogLevel::kWarning, false, ""));
  return *logger;
}

}  // namespace

bool parse_log_level(std::string_view text, LogLevel* level) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view kNames[] = {"trace", "debug", "info", "warning",
                                         "error", "fatal", "off"};
  if (lower == "warn") lower = "warning";
  for (int i = 0; i < 7; ++i) {
    if (lower == kNames[i]) {
      *level = static_cast<LogLevel>(i);
      return true;
    }
  }
  return false;
}

void configure_log(LogLevel level, bool hide_time, std::string prefix) {
  current().store(make_logger(level, hide_time, prefix));
}

bool log_enabled(LogLevel level) { return current().load()->should_log(to_spdlog(level)); }

void log_line(LogLevel level, std::string_view text) {
  auto logger = current().load();
  logger->log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace allring
