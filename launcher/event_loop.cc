#include "launcher/event_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "collectives/base/check.h"

namespace allring {

EventLoop::EventLoop() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ALLRING_CHECK(wake_, "no eventfd");
  watch(wake_.get(), POLLIN, [this] { run_posted(); });
}

void EventLoop::watch(int fd, short events, std::function<void()> ready) {
  watches_.insert_or_assign(fd, Watch{events, next_id_++, std::move(ready)});
}

void EventLoop::unwatch(int fd) { watches_.erase(fd); }

EventLoop::TimerId EventLoop::after(nanoseconds delay, std::function<void()> elapsed) {
  const TimerId id = next_id_++;
  const TimePoint time = Clock::real().now() + delay;
  timers_.emplace(std::pair(time, id), std::move(elapsed));
  timer_times_.emplace(id, time);
  return id;
}

void EventLoop::cancel(TimerId timer) {
  auto time = timer_times_.find(timer);
  if (time == timer_times_.end()) return;
  timers_.erase({time->second, timer});
  timer_times_.erase(time);
}

void EventLoop::post(std::function<void()> work) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(work));
  }
  if (!first) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void EventLoop::run_posted() {
  std::uint64_t count;
  [[maybe_unused]] const ssize_t taken = ::read(wake_.get(), &count, sizeof count);
  std::vector<std::function<void()>> work;
  {
    std::lock_guard lock(mutex_);
    work.swap(posted_);
  }
  for (auto& each : work) {
    if (stopped_) return;
    each();
  }
}

void EventLoop::run_timers() {
  const TimePoint now = Clock::real().now();
  while (!stopped_ && !timers_.empty() && timers_.begin()->first.first <= now) {
    auto timer = timers_.extract(timers_.begin());
    timer_times_.erase(timer.key().second);
    timer.mapped()();
  }
}

int EventLoop::poll_timeout_ms() const {
  if (timers_.empty()) return -1;
  const nanoseconds left = timers_.begin()->first.first - Clock::real().now();
  // Rounded up, or the loop would spin during the last millisecond.
  const auto ms = std::chrono::ceil<milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, INT_MAX));
}

void EventLoop::run() {
  std::vector<pollfd> polled;
  std::vector<std::uint64_t> ids;
  while (!stopped_) {
    polled.clear();
    ids.clear();
    for (const auto& [fd, watch] : watches_) {
      polled.push_back({fd, watch.events, 0});
      ids.push_back(watch.id);
    }
    const int ready = ::poll(polled.data(), polled.size(), poll_timeout_ms());
    if (ready > 0) {
      for (std::size_t i = 0; i < polled.size() && !stopped_; ++i) {
        if (polled[i].revents == 0) continue;
        ALLRING_CHECK((polled[i].revents & POLLNVAL) == 0, "a closed descriptor is watched");
        // An earlier handler of this round may have replaced or ended the watch.
        auto found = watches_.find(polled[i].fd);
        if (found == watches_.end() || found->second.id != ids[i]) continue;
        auto handler = found->second.ready;
        handler();
      }
    }
    run_timers();
  }
}

}  // namespace allring
