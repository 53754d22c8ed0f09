#pragma once

#include <functional>

#include "collectives/base/clock.h"
#include "launcher/event_loop.h"

namespace allring {

/// The steps by which a job's ranks are brought to their end: time to report what they saw of a
/// failure, a signal that asks them to end, and one that makes them. Belongs to the loop's thread.
class Ending {
 public:
  /// Both run on the loop.
  struct Handlers {
    /// Sends a signal to all ranks.
    std::function<void(int signal)> signal;
    /// Even after SIGKILL not all ranks have ended.
    std::function<void()> stuck;
  };

  /// @param grace between being asked and being killed.
  Ending(EventLoop& loop, nanoseconds grace, Handlers handlers);
  ~Ending();
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

  /// A rank has failed: the others are asked to end three seconds later.
  void after_failure();
  /// Asks all ranks to end, by `signal`, if they have not been asked yet.
  void ask(int signal);
  /// Kills all ranks, if they have not been killed yet.
  void kill();
  /// No rank is left, so nothing more is to be done.
  void stop();

  bool killed() const { return step_ == Step::kKilled; }

 private:
  enum class Step { kNone, kSettling, kAsked, kKilled, kStopped };
  void enter(Step step, nanoseconds duration, std::function<void()> then);

  EventLoop& loop_;
  const nanoseconds grace_;
  const Handlers handlers_;
  Step step_ = Step::kNone;
  EventLoop::TimerId timer_ = 0;
};

}  // namespace allring
