#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/socket.h"
#include "runtime/negotiation/control_channel.h"
#include "runtime/negotiation/control_link.h"

namespace allring {

/// The control channel between processes: a star of connections around the group's rank 0, over
/// unix sockets within a host and TCP between hosts.
///
/// A rank that has ended is noticed at once, by its closed connection or, within a host, by the
/// end of its process; one that is frozen or cut
/// off, by its silence: every rank says something at least each quarter of the heartbeat's timeout,
/// provided that its coordinator thread comes back to receive() so often. A rank that was stopped
/// itself for a while gives the others their full time again before it calls them silent.
///
/// What arrives changed is never used: the link is lost, with an error that names both ranks.
///
/// Threads: see ControlChannel.
class SocketControlChannel final : public ControlChannel {
 public:
  struct Settings {
    std::uint32_t channel = 0;  ///< process_set_id * 64
    /// World ranks in the order of the group's numbering, this rank among them.
    std::vector<Rank> members;
    /// A rank silent for so long is lost; zero: silence is never held against anyone.
    nanoseconds heartbeat_timeout = seconds(60);
  };

  /// Blocks until rank 0 has connections to all members, or this rank one to rank 0.
  /// @param endpoint knows its peers; needed during this call only.
  /// @return kTimedOut or kPeerLost naming the rank that did not come; kOutOfMemory; the
  ///         endpoint's abort reason.
  static Result<std::unique_ptr<SocketControlChannel>> connect(Endpoint& endpoint,
                                                               Settings settings,
                                                               Deadline deadline);

  /// Sends what is still queued, as long as the peers take it within a second, and closes.
  ~SocketControlChannel() override;

  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  Rank parent() const override { return rank_ == 0 ? -1 : 0; }
  std::span<const Rank> children() const override { return children_; }

  void send(Rank peer, std::span<const std::byte> bytes) override;
  ControlEvent receive(Deadline deadline) override;
  void wake() override;

 private:
  SocketControlChannel(Rank rank, int size, nanoseconds heartbeat_timeout);

  Status open(Endpoint& endpoint, const Settings& settings, Deadline deadline);
  Status watch(int fd, std::uint32_t index);
  Status add_link(Rank peer, Rank world_rank, std::string name, std::string own_name, Fd fd);
  ControlLink* link(Rank peer);
  void poll(Deadline deadline);
  void serve(ControlLink& link, std::uint32_t events);
  void bury(ControlLink& link);
  void read(ControlLink& link);
  void beat();
  void update_events(ControlLink& link);
  void lose(ControlLink& link, const Status& reason);
  void flush(Deadline deadline);

  const Rank rank_;
  const int size_;
  const nanoseconds heartbeat_timeout_;
  std::vector<Rank> children_;
  Fd epoll_;
  Fd wake_event_;
  /// Of the group's ranks 1, 2, .. on rank 0; of rank 0 elsewhere.
  std::vector<std::unique_ptr<ControlLink>> links_;
  std::deque<ControlEvent> events_;
  TimePoint last_poll_{};
  TimePoint next_beat_ = kNoDeadline;
};

}  // namespace allring
