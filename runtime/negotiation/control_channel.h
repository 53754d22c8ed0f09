#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"

namespace allring {

/// What receive() came back with.
struct ControlEvent {
  enum class Kind {
    kMessage,   ///< `bytes` from `peer`
    kWoken,     ///< wake() was called
    kPeerLost,  ///< the link to `peer` is gone; `reason` says how. Once per peer
    kDeadline,  ///< nothing happened until the deadline
  };
  Kind kind = Kind::kDeadline;
  Rank peer = -1;
  std::vector<std::byte> bytes;
  Status reason;
};

/// Whole small messages between the coordinator threads of a group, and the one place where a
/// coordinator thread blocks. Messages from one peer arrive in order. Which ranks are linked is the
/// channel's topology: a message may go to neighbours() only.
///
/// send() and receive() belong to the coordinator thread; wake() is thread-safe.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;
  /// The rank that decides for the group (rank 0's place in the star or tree), or -1 on that rank.
  virtual Rank parent() const = 0;
  virtual std::span<const Rank> children() const = 0;

  /// Queues a message; never waits for the peer. Sending to a lost peer does nothing.
  virtual void send(Rank peer, std::span<const std::byte> bytes) = 0;

  /// Blocks until something happens, sending what is queued meanwhile. Costs no CPU while idle.
  virtual ControlEvent receive(Deadline deadline) = 0;

  /// Makes a blocked or the next receive() return kWoken; several calls may collapse into one.
  virtual void wake() = 0;
};

}  // namespace allring
