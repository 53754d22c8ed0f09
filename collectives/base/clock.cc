#include "collectives/base/clock.h"

#include <thread>

namespace allring {

namespace {

class RealClock final : public Clock {
 public:
  TimePoint now() override { return std::chrono::steady_clock::now(); }
  void sleep_until(TimePoint time) override { std::this_thread::sleep_until(time); }
};

}  // namespace

Clock& Clock::real() {
  // Never destroyed: threads of ours may run while the process exits.
  static RealClock* const clock = new RealClock;
  return *clock;
}

Deadline deadline_after(nanoseconds duration) {
  const TimePoint now = Clock::real().now();
  if (duration < nanoseconds::zero() || duration > kNoDeadline - now) return kNoDeadline;
  return now + duration;
}

}  // namespace allring
