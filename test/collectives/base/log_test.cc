#include "collectives/base/log.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>
#include <string>

namespace allring {
namespace {

// What `body` writes to the standard error stream.
std::string captured(const std::function<void()>& body) {
  std::FILE* file = std::tmpfile();
  const int saved = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

TEST_CASE("levels are Horovod's words, in any case") {
  const char* const names[] = {"trace", "debug", "INFO", "Warning", "error", "fatal", "off"};
  for (int i = 0; i < 7; ++i) {
    LogLevel level = LogLevel::kOff;
    REQUIRE(parse_log_level(names[i], &level));
    REQUIRE(static_cast<int>(level) == i);
  }
  LogLevel level = LogLevel::kTrace;
  REQUIRE(parse_log_level("warn", &level));
  REQUIRE(level == LogLevel::kWarning);
}

TEST_CASE("other words are no levels and change nothing") {
  LogLevel level = LogLevel::kError;
  for (const char* text : {"", "verbose", "warnings", "3", " info"}) {
    REQUIRE_FALSE(parse_log_level(text, &level));
  }
  REQUIRE(level == LogLevel::kError);
}

TEST_CASE("lines carry level and prefix, and only those severe enough appear") {
  configure_log(LogLevel::kWarning, true, "[3@100%d]");
  REQUIRE(log_enabled(LogLevel::kWarning));
  REQUIRE_FALSE(log_enabled(LogLevel::kInfo));
  const std::string text = captured([] {
    ALLRING_LOG(kInfo, "too quiet");
    ALLRING_LOG(kError, "rank " << 2 << " is late by 5%d");
  });
  REQUIRE(text == "[allring error] [3@100%d] rank 2 is late by 5%d\n");
}

TEST_CASE("what is off is not even built") {
  configure_log(LogLevel::kOff, true, "");
  int built = 0;
  const std::string text = captured([&] { ALLRING_LOG(kFatal, ++built); });
  REQUIRE(text.empty());
  REQUIRE(built == 0);
}

TEST_CASE("the time can be shown") {
  configure_log(LogLevel::kInfo, false, "");
  const std::string text = captured([] { ALLRING_LOG(kInfo, "hello"); });
  configure_log(LogLevel::kWarning, false, "");
  REQUIRE(text.size() > 24);
  REQUIRE(text.front() == '[');
  REQUIRE(text.find("] [allring info] hello\n") != std::string::npos);
}

}  // namespace
}  // namespace allring
