#pragma once

#include <string>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/socket.h"

namespace allring {

/// A connection to a store's server that has passed the handshake, and which candidate it is.
struct StoreLink {
  Fd fd;
  std::string address;
};

/// See StoreClient::connect().
Result<StoreLink> connect_store(const std::vector<std::string>& candidates,
                                const std::string& secret, Rank rank, Deadline deadline);

/// The numeric addresses of `host` in the order in which the system prefers them.
/// @return kPeerLost with the resolver's words.
Result<std::vector<TcpAddress>> resolve(const std::string& host, std::uint16_t port);

}  // namespace allring
