#include "launcher/driver/ending.h"

#include <signal.h>

#include <utility>

namespace allring {

namespace {

constexpr seconds kSettle{3};
/// The kernel may hold up a killed process for a while.
constexpr seconds kStuck{15};

}  // namespace

Ending::Ending(EventLoop& loop, nanoseconds grace, Handlers handlers)
    : loop_(loop), grace_(grace), handlers_(std::move(handlers)) {}

Ending::~Ending() { stop(); }

void Ending::enter(Step step, nanoseconds duration, std::function<void()> then) {
  loop_.cancel(timer_);
  step_ = step;
  timer_ = loop_.after(duration, std::move(then));
}

void Ending::after_failure() {
  if (step_ == Step::kNone) enter(Step::kSettling, kSettle, [this] { ask(SIGTERM); });
}

void Ending::ask(int signal) {
  if (step_ != Step::kNone && step_ != Step::kSettling) return;
  enter(Step::kAsked, grace_, [this] { kill(); });
  handlers_.signal(signal);
}

void Ending::kill() {
  if (step_ == Step::kKilled || step_ == Step::kStopped) return;
  enter(Step::kKilled, kStuck, handlers_.stuck);
  handlers_.signal(SIGKILL);
}

void Ending::stop() {
  loop_.cancel(timer_);
  step_ = Step::kStopped;
}

}  // namespace allring
