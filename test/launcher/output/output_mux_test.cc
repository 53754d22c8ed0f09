#include "launcher/output/output_mux.h"

#include <catch2/catch.hpp>
#include <random>

namespace allring {
namespace {

constexpr OutputStream kOut = OutputStream::kStdout;
constexpr OutputStream kErr = OutputStream::kStderr;

TEST_CASE("whole lines get prefixes, parts wait") {
  OutputMux mux({});
  CHECK(mux.feed(3, kOut, "a\nb", 0) == "[3]<stdout>:a\n");
  CHECK(mux.feed(10, kOut, "x\n", 0) == "[10]<stdout>:x\n");
  CHECK(mux.feed(3, kErr, "e\n", 0) == "[3]<stderr>:e\n");
  CHECK(mux.feed(3, kOut, "", 0) == "");
  CHECK(mux.unfinished(3, kOut) == "b");
  CHECK(mux.feed(3, kOut, "c\n\nd\n", 0) == "[3]<stdout>:bc\n[3]<stdout>:\n[3]<stdout>:d\n");
  CHECK(mux.unfinished(3, kOut) == "");
}

TEST_CASE("what is left at the end becomes a line") {
  OutputMux mux({});
  CHECK(mux.feed(0, kOut, "part", 0) == "");
  CHECK(mux.close(0, kOut) == "[0]<stdout>:part\n");
  CHECK(mux.close(0, kOut) == "");
  CHECK(mux.close(7, kErr) == "");
}

TEST_CASE("bytes pass unchanged, however they are cut") {
  const auto seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::string bytes;
  std::string expected = "[0]<stdout>:";
  for (int i = 0; i < 20000; ++i) {
    const char c = static_cast<char>(random() % 5 == 0 ? '\n' : random());
    bytes += c;
    expected += c;
    if (c == '\n') expected += "[0]<stdout>:";
  }
  bytes += "\n";
  expected += "\n";
  OutputMux mux({});
  std::string got;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = 1 + random() % 50;
    got += mux.feed(0, kOut, std::string_view(bytes).substr(at, size), 0);
    at += size;
  }
  CHECK(got == expected);
}

TEST_CASE("time of the first byte of a line") {
  OutputMux mux({.timestamps = true});
  const std::string early = format_time(1'000'000'000'001'000);
  const std::string late = format_time(1'000'000'000'999'999);
  CHECK(early.substr(early.size() - 4) == ".001");
  CHECK(late.substr(late.size() - 4) == ".999");
  CHECK(mux.feed(0, kOut, "a", 1'000'000'000'001'000) == "");
  CHECK(mux.feed(0, kOut, "b\nc\n", 1'000'000'000'999'999) ==
        early + "[0]<stdout>:ab\n" + late + "[0]<stdout>:c\n");
}

TEST_CASE("carriage returns for files: kept, and a line is ended when it grows too long") {
  OutputMux mux({});
  CHECK(mux.feed(0, kErr, "\r10%\r20%", 0) == "");
  CHECK(mux.feed(0, kErr, "\r30%\n", 0) == "[0]<stderr>:\r10%\r20%\r30%\n");
  const std::string bar = std::string(1000, '#') + "\r";
  std::string got;
  for (int i = 0; i < 100; ++i) got += mux.feed(0, kErr, bar, 0);
  got += mux.close(0, kErr);
  CHECK(std::count(got.begin(), got.end(), '\r') == 100);
  CHECK(std::count(got.begin(), got.end(), '\n') == 2);
}

TEST_CASE("carriage returns for terminals: what is overwritten is not shown") {
  OutputMux mux({.overwrite_at_carriage_return = true});
  CHECK(mux.feed(0, kErr, "\r10%\r20%", 0) == "");
  CHECK(mux.unfinished(0, kErr) == "20%");
  CHECK(mux.feed(0, kErr, "\r30%\r", 0) == "");
  CHECK(mux.unfinished(0, kErr) == "30%\r");
  CHECK(mux.feed(0, kErr, "\ndos\r\n", 0) == "[0]<stderr>:30%\r\n[0]<stderr>:dos\r\n");
}

TEST_CASE("a line without end is ended") {
  OutputMux mux({});
  const std::string block(1 << 20, 'x');
  std::string got;
  for (int i = 0; i < 17; ++i) got += mux.feed(0, kOut, block, 0);
  CHECK(got.size() == std::string("[0]<stdout>:").size() + (17 << 20) + 1);
}

TEST_CASE("last lines") {
  OutputMux mux({});
  CHECK(mux.last_lines(0, kErr).empty());
  mux.feed(0, kErr, "a", 0);
  mux.feed(0, kErr, "b\nc\rd\n", 0);
  CHECK(mux.last_lines(0, kErr) == std::vector<std::string>{"ab", "d"});
  std::string many;
  for (int i = 0; i < 1000; ++i) many += std::to_string(i) + "\n";
  mux.feed(0, kErr, many, 0);
  const auto last = mux.last_lines(0, kErr);
  REQUIRE(last.size() == OutputMux::kLastLines);
  CHECK(last.front() == "990");
  CHECK(last.back() == "999");
}

}  // namespace
}  // namespace allring
