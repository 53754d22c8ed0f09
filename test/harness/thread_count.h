#pragma once

#include <filesystem>
#include <iterator>

#include "collectives/base/clock.h"

namespace allring::test {

/// Threads of this process. One that was joined may still be counted for a moment: the kernel wakes
/// whoever joins it before it takes the thread out of its tables.
inline int count_threads() {
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

/// Whether no more than `most` threads are left, which is given a while.
inline bool threads_fall_to(int most) {
  const Deadline deadline = deadline_after(seconds(10));
  while (count_threads() > most) {
    if (Clock::real().now() > deadline) return false;
    Clock::real().sleep_until(Clock::real().now() + milliseconds(1));
  }
  return true;
}

}  // namespace allring::test
