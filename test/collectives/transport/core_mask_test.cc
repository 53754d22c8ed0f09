#include "collectives/transport/core_mask.h"

#include <sched.h>

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

namespace allring {
namespace {

using std::string_view_literals::operator""sv;

TEST_CASE("cores of several masks count once") {
  CHECK(count_cores({}) == 0);
  CHECK(count_cores(std::vector{"\x01"sv, "\x02"sv}) == 2);
  CHECK(count_cores(std::vector{"\x03"sv, "\x02"sv}) == 2);
  CHECK(count_cores(std::vector{""sv, "\x00\xff"sv, "\x80"sv}) == 9);
}

TEST_CASE("the mask of a thread that is bound to one core has that core") {
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  const std::string mask = this_core_mask();
  CHECK(count_cores(std::vector<std::string_view>{mask}) == CPU_COUNT(&all));
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  std::thread([first] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return;
    const std::string bound = this_core_mask();
    CHECK(bound.size() == static_cast<std::size_t>(first / 8) + 1);
    CHECK(count_cores(std::vector<std::string_view>{bound}) == 1);
  }).join();
}

}  // namespace
}  // namespace allring
