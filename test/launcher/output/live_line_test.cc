#include "launcher/output/live_line.h"

#include <catch2/catch.hpp>

namespace allring {
namespace {

constexpr char kErase[] = "\r\x1b[K";

TEST_CASE("lines go above the live line") {
  LiveLine live(80);
  CHECK(live.show("a\n", "") == "a\n");
  CHECK(live.show("", "10%") == "10%");
  CHECK(live.show("", "10%") == "");
  CHECK(live.show("", "20%") == std::string(kErase) + "20%");
  CHECK(live.show("b\n", "20%") == std::string(kErase) + "b\n20%");
  CHECK(live.show("c\n", "") == std::string(kErase) + "c\n");
  CHECK(live.show("", "") == "");
}

TEST_CASE("a live line stays within one row") {
  LiveLine live(5);
  CHECK(live.show("", "abcdefgh") == "abcd");
  CHECK(live.show("", "\u00e4\u20ac\u2588\u2588\u2588") ==
        std::string(kErase) + "\u00e4\u20ac\u2588\u2588");
}

TEST_CASE("of control sequences only colours pass") {
  LiveLine live(80);
  CHECK(live.show("", "\x1b[31mred\x1b[A\tx\x07") == "\x1b[31mredx\x1b[0m");
}

}  // namespace
}  // namespace allring
