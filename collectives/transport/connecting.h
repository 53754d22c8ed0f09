#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/socket.h"

namespace allring {

/// A connection that is being made, by a thread of its own ("allring-connect") that ends with it,
/// so that nobody else waits for a peer that is slow to answer; by the caller where the system
/// allows no further thread. Belongs to one thread.
class Connecting {
 public:
  /// @param done_fd is signalled when done. All is as in Endpoint::connect() otherwise.
  Connecting(Endpoint& endpoint, Rank peer, std::uint32_t channel, Deadline deadline, int cancel_fd,
             int done_fd);
  /// Waits for the thread: make `cancel_fd` readable first.
  ~Connecting();

  bool done() const { return done_.load(std::memory_order_acquire); }
  /// What came of it. REQUIRES: done(). Once.
  Result<Fd> take();

 private:
  std::atomic<bool> done_{false};
  std::optional<Result<Fd>> outcome_;  // the thread's until done_
  std::optional<std::thread> thread_;
};

}  // namespace allring
