#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/frame.h"
#include "collectives/transport/link.h"
#include "collectives/transport/transport.h"

namespace allring {

/// A posted send or receive.
struct Operation {
  Rank peer = -1;  ///< as the group numbers it
  bool sending = false;
  bool done = false;
  Tag tag = 0;
  std::byte* data = nullptr;  ///< of a send: never written to
  std::size_t bytes = 0;
  std::uint32_t generation = 0;  ///< how often the slot was used: tells old tickets from new
  std::uint32_t slot = 0;
  Operation* next = nullptr;  ///< in the queue of its stream
};

/// The operations of one transport, each with a ticket. Slots are used again, so that posting
/// allocates nothing once enough have been in flight. Thread-compatible.
class OperationPool {
 public:
  /// An operation whose members but slot and generation are as by default.
  Operation* acquire();
  void release(Operation* operation);
  static Ticket ticket(const Operation& operation);
  /// Aborts if the ticket was never given out or has been waited for.
  Operation* find(Ticket ticket);

 private:
  std::deque<Operation> slots_;
  std::vector<Operation*> free_;
};

/// Operations to or from one peer, carried out one after the other over a link that may come later.
/// Thread-compatible.
class MessageStream {
 public:
  enum class Direction { kOutgoing, kIncoming };

  MessageStream(Direction direction, Rank peer) : direction_(direction), peer_(peer) {}

  Rank peer() const { return peer_; }
  Direction direction() const { return direction_; }
  bool sending() const { return direction_ == Direction::kOutgoing; }

  bool linked() const { return link_ != nullptr; }
  /// @param checked frames carry checksums; the same at both ends.
  void set_link(std::unique_ptr<Link> link, bool checked);
  Link& link() { return *link_; }

  void push(Operation* operation);
  /// No operation is pending.
  bool idle() const { return first_ == nullptr; }

  /// Moves bytes until the link has none or some budget is spent, so that others get their turn.
  /// @return whether any moved; kPeerLost or kInternal without the names of the ranks.
  /// REQUIRES: linked().
  Result<bool> advance();

  /// "3 of 7 bytes of the message with tag 5 have been sent": where the first operation stands.
  std::string describe_progress() const;

 private:
  Result<std::size_t> move_some();
  void start_first();
  bool frame_done() const;

  const Direction direction_;
  const Rank peer_;
  std::unique_ptr<Link> link_;
  std::unique_ptr<FrameWriter> writer_;
  std::unique_ptr<FrameReader> reader_;
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;
};

}  // namespace allring
