#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"

namespace allring {

/// Names a message within a channel; checked on arrival, not used to reorder. Made by
/// Group::next_tag(), so that all ranks of a group give one collective the same numbers.
using Tag = std::uint64_t;

/// A posted operation, to be waited for exactly once. 0 is never a ticket.
using Ticket = std::uint64_t;

/// Moves bytes between the ranks of one group over one channel.
///
/// Order: messages from rank a to rank b arrive in the order in which a posted them, and b must
/// post its receives for a in that order; a tag or length that differs is kInternal and names
/// both. Nothing is buffered without bound: a send may stay incomplete until the peer has posted
/// the receive, so post before you wait.
///
/// Progress is made by whoever waits: wait() moves every posted operation of this transport, not
/// just its own. There is no thread inside.
///
/// Thread-compatible (one thread at a time: the lane that owns the channel), except abort().
class Transport {
 public:
  virtual ~Transport() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  /// Starts sending `bytes` to `peer` (not oneself); they must stay unchanged until wait().
  virtual Result<Ticket> post_send(Rank peer, Tag tag, std::span<const std::byte> bytes) = 0;

  /// Starts receiving exactly bytes.size() bytes from `peer` (not oneself).
  virtual Result<Ticket> post_recv(Rank peer, Tag tag, std::span<std::byte> bytes) = 0;

  /// Blocks until the operation is complete: a received buffer is filled, a sent one is free for
  /// reuse. Operations may be waited for in any order.
  /// @return kPeerLost naming the rank, kTimedOut, or what abort() was given. After a failure
  ///         the transport is of no further use, and buffers of posted operations are undefined.
  virtual Status wait(Ticket ticket, Deadline deadline) = 0;

  /// Makes every pending and later operation fail with `reason`, waking a thread blocked in
  /// wait(). The first reason stays. Thread-safe.
  virtual void abort(Status reason) noexcept = 0;
};

}  // namespace allring
