#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/transport/handshake.h"
#include "collectives/transport/socket.h"
#include "runtime/rendezvous/store_protocol.h"

namespace allring {

/// A store server's end of one connection: proof of the secret, then requests in and answers
/// out, none of it blocking. A client that does not read its answers is not read from either, so
/// what it can make the server keep is bounded. Thread-compatible.
class StoreConnection {
 public:
  /// Shared by all clients that wait for it.
  using Value = std::shared_ptr<const std::string>;

  StoreConnection(Fd fd, const std::string& secret, TimePoint since);

  int fd() const { return fd_.get(); }
  TimePoint since() const { return since_; }
  bool proven() const { return !handshake_; }

  /// Moves bytes both ways as far as the socket allows, handing each request to `take`, which may
  /// call answer(). The strings of a frame are valid during the call.
  /// @return why the connection is to be closed.
  Status advance(const std::function<Status(const StoreFrame&)>& take);

  /// Queues an answer; advance() sends it.
  void answer(StoreFrameType type, std::uint32_t id, Value value = nullptr);

  /// What to poll for until the next advance(): EPOLLIN, EPOLLOUT.
  std::uint32_t wanted_events() const;

 private:
  struct Outgoing {
    std::string head;
    Value value;
    std::size_t bytes() const { return head.size() + (value ? value->size() : 0); }
  };

  bool crowded() const;
  Status shake_hands();
  Status write();
  Status take_requests(const std::function<Status(const StoreFrame&)>& take);
  /// @return false if there is nothing to read at the moment.
  Result<bool> read();

  Fd fd_;
  TimePoint since_;
  std::optional<ServerHandshake> handshake_;
  bool handshake_writes_ = false;
  StoreFrameReader reader_;
  std::deque<Outgoing> outgoing_;
  std::size_t outgoing_bytes_ = 0;
  std::size_t sent_ = 0;  // of outgoing_.front()
};

}  // namespace allring
