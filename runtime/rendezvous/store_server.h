#pragma once

#include <memory>
#include <string>

#include "collectives/base/status.h"
#include "runtime/rendezvous/key_value.h"

namespace allring {

/// Serves a KeyValueMap to the StoreClients of one job, over a unix or a TCP stream. One thread;
/// each connection has a bounded amount of memory and, until it has proved that it knows the
/// secret, a bounded time, so strangers can neither read nor exhaust anything.
///
/// Protocol: the mutual proof of the secret (collectives/transport/handshake.h), then the frames
/// of store_protocol.h.
class StoreServer {
 public:
  /// @param address "unix:@name" (abstract socket: peers must have this process's user id) or
  ///        "tcp:host:port", where host is numeric, empty (every interface) or localhost,
  ///        and port 0 takes a free one.
  /// @param secret may be empty on unix sockets only.
  /// @param map must outlive the server; may be shared with other servers and direct users.
  /// @return kInvalidArgument for a malformed address, one that is in use or not of this host, or
  ///         a missing secret; kOutOfMemory.
  static Result<std::unique_ptr<StoreServer>> listen(const std::string& address, std::string secret,
                                                     KeyValueMap& map);

  /// Answers what can be answered without blocking, closes every connection, so that other pending
  /// waits of clients fail, and joins the thread.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// As given to listen(), with the real port: what a StoreClient on this host connects to.
  std::string address() const;

 private:
  class Loop;
  explicit StoreServer(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace allring
