#include "collectives/base/clock.h"

#include <catch2/catch.hpp>

namespace allring {
namespace {

TEST_CASE("the real clock goes forward and sleeps until a point in time") {
  Clock& clock = Clock::real();
  const TimePoint before = clock.now();
  clock.sleep_until(before + milliseconds(2));
  REQUIRE(clock.now() >= before + milliseconds(2));
  clock.sleep_until(before);  // in the past: returns at once
}

TEST_CASE("a deadline is so long from now, and never for what has no end") {
  const TimePoint before = Clock::real().now();
  const Deadline deadline = deadline_after(seconds(10));
  REQUIRE(deadline >= before + seconds(10));
  REQUIRE(deadline <= Clock::real().now() + seconds(10));
  REQUIRE(deadline_after(nanoseconds(-1)) == kNoDeadline);
  REQUIRE(deadline_after(nanoseconds::max()) == kNoDeadline);
  REQUIRE(deadline_after(nanoseconds::zero()) != kNoDeadline);
}

}  // namespace
}  // namespace allring
