#pragma once

#include <chrono>

namespace allring {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// A point of a Clock's own time line; zero is arbitrary.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, nanoseconds>;

/// When to give up. TimePoint::max() means never.
using Deadline = TimePoint;
inline constexpr Deadline kNoDeadline = TimePoint::max();

/// Time, real or simulated. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() = 0;
  /// Blocks the caller until `time`.
  virtual void sleep_until(TimePoint time) = 0;

  Deadline after(nanoseconds duration) { return now() + duration; }

  /// The monotonic clock of the system.
  static Clock& real();
};

/// now + duration on the real clock; kNoDeadline for a negative or overflowing duration.
Deadline deadline_after(nanoseconds duration);

}  // namespace allring
