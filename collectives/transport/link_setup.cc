#include "collectives/transport/link_setup.h"

#include <cstdint>
#include <span>
#include <utility>

#include "collectives/base/log.h"
#include "collectives/transport/segment.h"
#include "collectives/transport/shm_link.h"
#include "collectives/transport/socket_link.h"

namespace allring {

namespace {

struct Setup {
  std::uint64_t segment_bytes = 0;  ///< 0: the bytes go through the socket
};

}  // namespace

Result<std::unique_ptr<Link>> open_link(Fd connection, std::size_t ring_bytes) {
  if (!is_unix_socket(connection.get())) {
    return std::unique_ptr<Link>(std::make_unique<SocketLink>(std::move(connection)));
  }
  std::shared_ptr<Segment> ring;
  if (ring_bytes > 0) {
    Result<std::shared_ptr<Segment>> made = Segment::create(shm_ring_bytes(ring_bytes));
    if (made.ok()) {
      ring = *made;
    } else {
      ALLRING_LOG(kWarning, "two ranks of this host talk over a socket, which is slower: "
                                << made.status().message());
    }
  }
  // A fresh connection has room for this: there is nothing to wait for.
  const Setup setup{ring ? ring->bytes().size() : 0};
  ALLRING_RETURN_IF_ERROR(send_with_fd(connection.get(), std::as_bytes(std::span(&setup, 1)),
                                       ring ? ring->fd() : -1, deadline_after(seconds(1))));
  if (!ring) return std::unique_ptr<Link>(std::make_unique<SocketLink>(std::move(connection)));
  return std::unique_ptr<Link>(std::make_unique<ShmLink>(ShmLink::Direction::kWriting,
                                                         std::move(ring), std::move(connection)));
}

Result<std::unique_ptr<Link>> try_accept_link(Fd* connection) {
  if (!is_unix_socket(connection->get())) {
    return std::unique_ptr<Link>(std::make_unique<SocketLink>(std::move(*connection)));
  }
  // Such a short message arrives whole or not at all.
  Setup setup;
  Result<Fd> memory =
      receive_with_fd(connection->get(), std::as_writable_bytes(std::span(&setup, 1)), TimePoint());
  if (memory.status().code() == StatusCode::kTimedOut) return std::unique_ptr<Link>();
  ALLRING_RETURN_IF_ERROR(memory.status());
  if (!*memory) {
    return std::unique_ptr<Link>(std::make_unique<SocketLink>(std::move(*connection)));
  }
  ALLRING_ASSIGN_OR_RETURN(std::shared_ptr<Segment> ring,
                           Segment::attach(*std::move(memory), setup.segment_bytes));
  return std::unique_ptr<Link>(std::make_unique<ShmLink>(ShmLink::Direction::kReading,
                                                         std::move(ring), std::move(*connection)));
}

}  // namespace allring
