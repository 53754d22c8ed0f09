#pragma once

#include <cstddef>
#include <memory>

#include "collectives/base/status.h"
#include "collectives/transport/link.h"
#include "collectives/transport/socket.h"

namespace allring {

// How a link comes out of a fresh connection. On TCP the connection is the link. On unix sockets,
// the side that connects says whether the bytes are to go through the socket, or through a ring in
// shared memory that it passes along.

/// The sending end; does not wait for the receiving one.
/// @param ring_bytes capacity of the ring (a power of two); 0, or no memory for it: the socket.
Result<std::unique_ptr<Link>> open_link(Fd connection, std::size_t ring_bytes);

/// The receiving end; null while the connection's first bytes have not arrived, and then
/// `*connection` stays for the next try. @return kPeerLost without a rank, kOutOfMemory if the ring
/// cannot be mapped.
Result<std::unique_ptr<Link>> try_accept_link(Fd* connection);

}  // namespace allring
