#include "launcher/driver/stdin_relay.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace allring {

namespace {

/// Of a shell's background job that reads its terminal, the kernel stops the whole group.
bool is_background_of_terminal() {
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  return foreground >= 0 && foreground != ::getpgrp();
}

}  // namespace

StdinRelay::StdinRelay(EventLoop& loop, std::int64_t window_bytes, Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), credit_bytes_(window_bytes) {
  update();
}

StdinRelay::~StdinRelay() { stop(); }

void StdinRelay::grant(std::int64_t bytes) {
  credit_bytes_ += bytes;
  update();
}

void StdinRelay::stop() {
  stopped_ = true;
  update();
}

void StdinRelay::update() {
  loop_.cancel(background_timer_);
  if (!stopped_ && credit_bytes_ > 0) {
    loop_.watch(STDIN_FILENO, POLLIN, [this] { read(); });
  } else {
    loop_.unwatch(STDIN_FILENO);
  }
}

void StdinRelay::read() {
  if (is_background_of_terminal()) {
    loop_.unwatch(STDIN_FILENO);
    background_timer_ = loop_.after(seconds(1), [this] { update(); });
    return;
  }
  std::string bytes(static_cast<std::size_t>(std::min<std::int64_t>(credit_bytes_, 64 << 10)),
                    '\0');
  const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    stop();
    handlers_.end();
    return;
  }
  bytes.resize(static_cast<std::size_t>(got));
  credit_bytes_ -= got;
  update();
  handlers_.bytes(std::move(bytes));
}

}  // namespace allring
