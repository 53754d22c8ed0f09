#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/event_loop.h"

namespace allring {

/// Reads standard input as fast as rank 0 takes it. Belongs to the loop's thread.
class StdinRelay {
 public:
  struct Handlers {
    std::function<void(std::string)> bytes;
    std::function<void()> end;
  };

  /// @param window_bytes may be under way before grant() gives more.
  StdinRelay(EventLoop& loop, std::int64_t window_bytes, Handlers handlers);
  ~StdinRelay();
  StdinRelay(const StdinRelay&) = delete;
  StdinRelay& operator=(const StdinRelay&) = delete;

  void grant(std::int64_t bytes);
  /// Reads no more.
  void stop();

 private:
  void update();
  void read();

  EventLoop& loop_;
  Handlers handlers_;
  std::int64_t credit_bytes_;
  bool stopped_ = false;
  EventLoop::TimerId background_timer_ = 0;
};

}  // namespace allring
