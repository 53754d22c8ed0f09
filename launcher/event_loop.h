#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "collectives/base/clock.h"
#include "launcher/file_descriptor.h"

namespace allring {

/// The one thread of a driver or an agent on which everything happens: readable descriptors,
/// timers, and work that other threads hand over. So neither needs a lock for its state.
///
/// Owned by the thread that calls run(); only post() may be called from others.
class EventLoop {
 public:
  using TimerId = std::uint64_t;

  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Calls `ready` again and again while poll() reports one of `events`, an error or a hang-up on
  /// fd. A second watch of an fd replaces the first. Handlers may watch and unwatch anything.
  void watch(int fd, short events, std::function<void()> ready);
  /// Unknown descriptors are fine. Must be called before fd is closed.
  void unwatch(int fd);

  /// Calls `elapsed` once, `delay` from now.
  TimerId after(nanoseconds delay, std::function<void()> elapsed);
  /// Unknown and elapsed timers are fine.
  void cancel(TimerId timer);

  /// Runs `work` on the loop's thread, in the order of the posts. Thread-safe. Work that the loop
  /// has not come to when it stops is dropped.
  void post(std::function<void()> work);

  /// Blocks until stop(), which must be called from a handler, a timer or posted work.
  void run();
  void stop() { stopped_ = true; }

 private:
  struct Watch {
    short events;
    std::uint64_t id;
    std::function<void()> ready;
  };

  void run_posted();
  void run_timers();
  int poll_timeout_ms() const;

  bool stopped_ = false;
  std::uint64_t next_id_ = 1;
  std::map<int, Watch> watches_;
  std::map<std::pair<TimePoint, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, TimePoint> timer_times_;

  FileDescriptor wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;
};

}  // namespace allring
