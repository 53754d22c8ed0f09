#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/socket.h"

namespace allring {

/// Longer messages travel in parts.
inline constexpr std::size_t kControlPartBytes = 1u << 20;

/// One connection of a control channel: whole messages of any length in and out, without blocking.
/// On the wire a part of a message is its length (u32, little endian; bit 31: more parts follow),
/// CRC32C of that, its bytes, and CRC32C of those; the length 2^32 - 1 with its CRC32C alone is a
/// sign of life. Memory grows with what has arrived, not with what a length promises.
/// Thread-compatible.
class ControlLink {
 public:
  /// @param peer in the group; @param world_rank, @param name and @param own_name for messages.
  ControlLink(Rank peer, Rank world_rank, std::string name, std::string own_name, Fd fd,
              TimePoint now);

  /// Lets the system notice a cut network where it can do so sooner than `silence`.
  void watch_network(nanoseconds silence);

  /// Readable once the peer's process has ended, which a closed connection does not tell while a
  /// process that it forked still holds its end open. -1 if the peer is on another host, or if
  /// the system cannot tell.
  int process_fd() const { return process_.get(); }

  Rank peer() const { return peer_; }
  int fd() const { return fd_.get(); }
  bool lost() const { return !fd_; }
  /// "rank 3 (host b, pid 77) ..." as kPeerLost of its world rank.
  Status lost_because(const std::string& what) const;

  void queue(std::span<const std::byte> bytes);
  void queue_sign_of_life();
  /// Sends what the socket takes of the queue. What cannot be sent any more is dropped: reading
  /// tells what has happened to the peer, after its last words.
  void write();
  bool has_queued() const { return !outgoing_.empty(); }

  /// Reads what is there, up to a limit, and appends whole messages to *messages.
  /// @return kPeerLost if the link is of no further use, also because bytes arrived changed.
  Status read(TimePoint now, std::vector<std::vector<std::byte>>* messages);

  /// Ends the connection, also for processes that have inherited it.
  void close();

  TimePoint last_heard() const { return last_heard_; }
  void forgive(TimePoint now) { last_heard_ = now; }
  /// Whether anything was queued since the last call.
  bool take_spoken() { return std::exchange(spoken_, false); }

  std::uint32_t polled_events = 0;  ///< the channel's: what its epoll set has for this link

 private:
  Status take_messages(std::vector<std::vector<std::byte>>* messages);
  Status read_failure(int error) const;
  Status arrived_changed() const;

  const Rank peer_;
  const Rank world_rank_;
  const std::string name_;
  const std::string own_name_;
  Fd fd_;
  Fd process_;
  std::deque<std::vector<std::byte>> outgoing_;
  std::size_t sent_ = 0;  // of outgoing_.front()
  std::vector<std::byte> incoming_;
  std::vector<std::byte> earlier_parts_;  // of the message that is arriving
  TimePoint last_heard_;
  bool spoken_ = false;
};

}  // namespace allring
