#pragma once

#include <sstream>
#include <string>
#include <string_view>

namespace allring {

enum class LogLevel : int { kTrace, kDebug, kInfo, kWarning, kError, kFatal, kOff };

/// "trace" ... "off", any case; Horovod's spellings. False if it is none of them.
bool parse_log_level(std::string_view text, LogLevel* level);

/// Sets level and prefix of every later line ("[3@host]" once rank and host are known).
/// Thread-safe. Lines go to stderr, whole.
void configure_log(LogLevel level, bool hide_time, std::string prefix);
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view text);

}  // namespace allring

/// ALLRING_LOG(kWarning, "rank " << r << " is late"); the text is built only if the level is on.
#define ALLRING_LOG(level, stream)                                         \
  do {                                                                     \
    if (::allring::log_enabled(::allring::LogLevel::level)) {              \
      std::ostringstream allring_log_;                                     \
      allring_log_ << stream;                                              \
      ::allring::log_line(::allring::LogLevel::level, allring_log_.str()); \
    }                                                                      \
  } while (false)
