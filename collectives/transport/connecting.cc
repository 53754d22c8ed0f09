#include "collectives/transport/connecting.h"

#include <utility>

#include "collectives/base/check.h"
#include "collectives/base/thread.h"

namespace allring {

Connecting::Connecting(Endpoint& endpoint, Rank peer, std::uint32_t channel, Deadline deadline,
                       int cancel_fd, int done_fd) {
  const auto connect = [this, &endpoint, peer, channel, deadline, cancel_fd, done_fd] {
    outcome_.emplace(endpoint.connect(peer, channel, deadline, cancel_fd));
    done_.store(true, std::memory_order_release);
    signal_event(done_fd);
  };
  thread_ = try_start_thread("allring-connect", connect);
  if (!thread_) connect();
}

Connecting::~Connecting() {
  if (thread_) thread_->join();
}

Result<Fd> Connecting::take() {
  ALLRING_CHECK(done() && outcome_, "a connection is taken once, when it is made");
  return std::exchange(outcome_, std::nullopt).value();
}

}  // namespace allring
