#include "collectives/transport/mesh.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>

#include "collectives/transport/connecting.h"
#include "collectives/transport/link_setup.h"
#include "collectives/transport/message_stream.h"
#include "collectives/transport/relax.h"
#include "collectives/transport/spin_budget.h"

namespace allring {

namespace {

constexpr std::size_t kLeastRingBytes = 4096;
constexpr std::size_t kLargestRingBytes = 512 * 1024;
/// A turn that makes system calls lasts about as long as so many that do not.
constexpr int kCostlyTurn = 16;
/// Looking at the clock costs as much as a turn.
constexpr int kTurnsPerCheck = 256;

}  // namespace

/// Streams, the operations on them, and the one place where the lane waits.
class MeshTransport::Impl {
 public:
  Impl(Endpoint& endpoint, Settings settings, Rank rank)
      : endpoint_(endpoint),
        settings_(std::move(settings)),
        rank_(rank),
        spin_budget_(settings_.wait.spins) {}
  ~Impl();

  Status start();
  Result<Ticket> post(Rank peer, bool sending, Tag tag, std::byte* data, std::size_t bytes);
  Status wait(Ticket ticket, Deadline deadline);
  void abort(Status reason) noexcept;

 private:
  /// What connects this rank with one other.
  struct Peer {
    std::unique_ptr<MessageStream> outgoing;
    std::unique_ptr<MessageStream> incoming;
    std::unique_ptr<Connecting> connecting;  // of outgoing, until it is linked
    Fd arrived;  // of incoming: a connection whose first bytes have not come yet
  };
  /// How a wait is going.
  struct Waiting {
    std::int64_t idle_turns = 0;   ///< since something moved
    std::int64_t spins = -1;       ///< of these turns, how many spin; -1: nothing is waited for yet
    std::int64_t until_check = 0;  ///< turns until the deadline is looked at
  };

  void open_stream(Rank peer);
  Status try_open_link(MessageStream& stream);
  Status try_accept_stream(MessageStream& stream);
  Result<bool> progress();
  Status pause(Waiting* waiting, Deadline deadline);
  void end_idling(Waiting* waiting);
  Status sleep(Deadline deadline);
  Status check_deadline(const Operation& awaited, Deadline deadline);
  Status abort_reason() const;
  Status fail(Status status);

  const PeerInfo& info(Rank peer) const { return endpoint_.peer(settings_.members[peer]); }
  bool same_host(Rank peer) const { return info(peer).same_host(endpoint_.info()); }
  std::size_t ring_bytes(Rank peer) const;
  Status name_link(const MessageStream& stream, const Status& status) const;

  Endpoint& endpoint_;
  const Settings settings_;
  const Rank rank_;
  OperationPool pool_;
  std::vector<Peer> peers_;
  std::vector<MessageStream*> active_;  // those with a pending operation
  std::vector<pollfd> pollfds_;
  Fd wake_event_;    // signalled for connections that arrive or are made, and by abort()
  Fd cancel_event_;  // by abort() and the destructor only
  bool watching_ = false;
  SpinBudget spin_budget_;
  bool costly_ = false;  // the last progress() made system calls
  Status failure_;

  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;  // guards reason_
  Status reason_;
};

MeshTransport::Impl::~Impl() {
  if (cancel_event_) signal_event(cancel_event_.get());
  for (Peer& peer : peers_) peer.connecting.reset();
  if (!watching_) return;
  endpoint_.unwatch(settings_.channel);
  endpoint_.discard(settings_.channel);
}

Status MeshTransport::Impl::start() {
  peers_.resize(settings_.members.size());
  ALLRING_ASSIGN_OR_RETURN(wake_event_, make_event());
  ALLRING_ASSIGN_OR_RETURN(cancel_event_, make_event());
  endpoint_.watch(settings_.channel, wake_event_.get());
  watching_ = true;
  return {};
}

std::size_t MeshTransport::Impl::ring_bytes(Rank peer) const {
  if (!settings_.shared_memory || !info(peer).shared_memory || !endpoint_.info().shared_memory) {
    return 0;
  }
  std::size_t local = 0;
  for (Rank other = 0; other < static_cast<Rank>(peers_.size()); ++other) local += same_host(other);
  const std::size_t share = settings_.shared_memory_bytes / (local * (local - 1));
  return std::clamp(std::bit_floor(share), kLeastRingBytes, kLargestRingBytes);
}

Result<Ticket> MeshTransport::Impl::post(Rank peer, bool sending, Tag tag, std::byte* data,
                                         std::size_t bytes) {
  ALLRING_CHECK(peer >= 0 && peer < static_cast<Rank>(peers_.size()) && peer != rank_,
                "a message goes to another rank of the group");
  ALLRING_RETURN_IF_ERROR(failure_);
  if (aborted_.load(std::memory_order_acquire)) return fail(abort_reason());
  if (sending && !peers_[peer].outgoing) open_stream(peer);
  if (!sending && !peers_[peer].incoming) {
    peers_[peer].incoming =
        std::make_unique<MessageStream>(MessageStream::Direction::kIncoming, peer);
  }
  Operation* operation = pool_.acquire();
  operation->peer = peer;
  operation->sending = sending;
  operation->tag = tag;
  operation->data = data;
  operation->bytes = bytes;
  MessageStream& stream = sending ? *peers_[peer].outgoing : *peers_[peer].incoming;
  const bool was_idle = stream.idle();
  stream.push(operation);
  if (was_idle && sending && stream.linked()) {
    // Small messages are on their way before anybody waits.
    const Result<bool> moved = stream.advance();
    if (!moved.ok()) return fail(name_link(stream, moved.status()));
  }
  if (was_idle && !stream.idle()) active_.push_back(&stream);
  return OperationPool::ticket(*operation);
}

void MeshTransport::Impl::open_stream(Rank peer) {
  peers_[peer].outgoing =
      std::make_unique<MessageStream>(MessageStream::Direction::kOutgoing, peer);
  peers_[peer].connecting = std::make_unique<Connecting>(
      endpoint_, settings_.members[peer], settings_.channel,
      deadline_after(settings_.connect_timeout), cancel_event_.get(), wake_event_.get());
}

Status MeshTransport::Impl::try_open_link(MessageStream& stream) {
  const Rank peer = stream.peer();
  if (!peers_[peer].connecting->done()) return {};
  Result<Fd> connection = peers_[peer].connecting->take();
  peers_[peer].connecting.reset();
  if (!connection.ok()) {
    const bool aborted = aborted_.load(std::memory_order_acquire);
    return aborted ? abort_reason() : connection.status();
  }
  Result<std::unique_ptr<Link>> link =
      open_link(*std::move(connection), same_host(peer) ? ring_bytes(peer) : 0);
  if (!link.ok()) return name_link(stream, link.status());
  stream.set_link(*std::move(link), !same_host(peer));
  return {};
}

Status MeshTransport::Impl::try_accept_stream(MessageStream& stream) {
  Fd& arrived = peers_[stream.peer()].arrived;
  if (!arrived) {
    ALLRING_ASSIGN_OR_RETURN(
        arrived, endpoint_.try_accept(settings_.channel, settings_.members[stream.peer()]));
    if (!arrived) return {};
  }
  Result<std::unique_ptr<Link>> link = try_accept_link(&arrived);
  if (!link.ok()) return name_link(stream, link.status());
  if (*link) stream.set_link(*std::move(link), !same_host(stream.peer()));
  return {};
}

Result<bool> MeshTransport::Impl::progress() {
  bool moved = false;
  costly_ = false;
  for (std::size_t i = 0; i < active_.size();) {
    MessageStream& stream = *active_[i];
    if (!stream.linked()) {
      costly_ = true;
      Status status = stream.sending() ? try_open_link(stream) : try_accept_stream(stream);
      if (!status.ok()) return fail(std::move(status));
    }
    if (stream.linked()) {
      costly_ = costly_ || !stream.link().cheap();
      const Result<bool> advanced = stream.advance();
      if (!advanced.ok()) return fail(name_link(stream, advanced.status()));
      moved = moved || *advanced;
    }
    if (stream.idle()) {
      active_[i] = active_.back();
      active_.pop_back();
    } else {
      ++i;
    }
  }
  return moved;
}

Status MeshTransport::Impl::wait(Ticket ticket, Deadline deadline) {
  Operation* operation = pool_.find(ticket);
  Waiting waiting;
  Status status = failure_;
  while (status.ok() && !operation->done) {
    if (aborted_.load(std::memory_order_acquire)) {
      status = fail(abort_reason());
      break;
    }
    const Result<bool> moved = progress();
    status = moved.status();
    if (!status.ok() || operation->done) break;
    if (*moved) end_idling(&waiting);
    waiting.until_check -= costly_ ? kCostlyTurn : 1;
    if (waiting.until_check <= 0) {
      waiting.until_check = kTurnsPerCheck;
      status = check_deadline(*operation, deadline);
    }
    if (status.ok() && !*moved) status = pause(&waiting, deadline);
  }
  if (operation->done) {
    end_idling(&waiting);
    status = {};
  }
  pool_.release(operation);
  return status;
}

void MeshTransport::Impl::end_idling(Waiting* waiting) {
  if (waiting->spins >= 0) {
    waiting->idle_turns <= waiting->spins ? spin_budget_.caught() : spin_budget_.missed();
  }
  waiting->idle_turns = 0;
  waiting->spins = -1;
}

Status MeshTransport::Impl::pause(Waiting* waiting, Deadline deadline) {
  if (waiting->spins < 0) waiting->spins = spin_budget_.begin();
  waiting->idle_turns += costly_ ? kCostlyTurn : 1;
  if (waiting->idle_turns <= waiting->spins) {
    relax();
  } else if (waiting->idle_turns <= waiting->spins + settings_.wait.yields) {
    sched_yield();
  } else {
    waiting->until_check = 0;
    return sleep(deadline);
  }
  return {};
}

Status MeshTransport::Impl::sleep(Deadline deadline) {
  pollfds_.clear();
  pollfds_.push_back({wake_event_.get(), POLLIN, 0});
  std::size_t prepared = 0;
  bool ready = false;
  for (; prepared < active_.size() && !ready; ++prepared) {
    MessageStream& stream = *active_[prepared];
    if (stream.linked()) {
      const short events = stream.link().prepare_sleep(!stream.sending(), stream.sending());
      pollfds_.push_back({stream.link().fd(), events, 0});
      ready = events == 0;
    } else if (const Fd& arrived = peers_[stream.peer()].arrived; !stream.sending() && arrived) {
      pollfds_.push_back({arrived.get(), POLLIN, 0});
    }
  }
  Status status;
  if (!ready) {
    status = wait_any(pollfds_, deadline);
    if (pollfds_[0].revents != 0) drain_event(wake_event_.get());
  }
  for (std::size_t i = 0; i < prepared; ++i) {
    if (active_[i]->linked()) active_[i]->link().finish_sleep();
  }
  // The next check tells whether the time is really up.
  if (status.ok() || status.code() == StatusCode::kTimedOut) return {};
  return fail(std::move(status));
}

Status MeshTransport::Impl::check_deadline(const Operation& awaited, Deadline deadline) {
  if (deadline == kNoDeadline || Clock::real().now() < deadline) return {};
  const Peer& peer = peers_[awaited.peer];
  const MessageStream& stream = awaited.sending ? *peer.outgoing : *peer.incoming;
  return fail(Status::timed_out(endpoint_.info().describe() + " waited in vain for " +
                                info(awaited.peer).describe() +
                                (stream.linked()   ? ": "
                                 : awaited.sending ? ", which has not let it in: "
                                                   : ", which has not connected: ") +
                                stream.describe_progress() +
                                ". See whether it is stopped or cut off, or calls something else"));
}

Status MeshTransport::Impl::abort_reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

Status MeshTransport::Impl::fail(Status status) {
  if (failure_.ok()) failure_ = std::move(status);
  return failure_;
}

Status MeshTransport::Impl::name_link(const MessageStream& stream, const Status& status) const {
  const std::string me = endpoint_.info().describe();
  const std::string peer = info(stream.peer()).describe();
  if (status.code() == StatusCode::kPeerLost) {
    return Status::peer_lost(settings_.members[stream.peer()],
                             peer + " is gone, " + me + " says: " + status.message() +
                                 "; its process has ended or was killed, or its host was cut off");
  }
  return status.with_prefix(stream.sending() ? "from " + me + " to " + peer + ": "
                                             : "from " + peer + " to " + me + ": ");
}

void MeshTransport::Impl::abort(Status reason) noexcept {
  ALLRING_CHECK(!reason.ok(), "abort needs a reason");
  {
    std::lock_guard lock(mutex_);
    if (!reason_.ok()) return;
    reason_ = std::move(reason);
  }
  aborted_.store(true, std::memory_order_release);
  signal_event(cancel_event_.get());
  signal_event(wake_event_.get());
}

Result<std::unique_ptr<MeshTransport>> MeshTransport::create(Endpoint& endpoint,
                                                             Settings settings) {
  if (settings.members.empty()) {
    settings.members.resize(static_cast<std::size_t>(endpoint.size()));
    std::iota(settings.members.begin(), settings.members.end(), 0);
  }
  const auto me = std::find(settings.members.begin(), settings.members.end(), endpoint.rank());
  if (me == settings.members.end()) {
    return Status::invalid_argument("rank " + std::to_string(endpoint.rank()) +
                                    " is not a member of the group that it wants to talk to");
  }
  const auto rank = static_cast<Rank>(me - settings.members.begin());
  const int size = static_cast<int>(settings.members.size());
  auto impl = std::make_unique<Impl>(endpoint, std::move(settings), rank);
  ALLRING_RETURN_IF_ERROR(impl->start());
  return std::unique_ptr<MeshTransport>(new MeshTransport(std::move(impl), rank, size));
}

MeshTransport::MeshTransport(std::unique_ptr<Impl> impl, Rank rank, int size)
    : impl_(std::move(impl)), rank_(rank), size_(size) {}

MeshTransport::~MeshTransport() = default;

Result<Ticket> MeshTransport::post_send(Rank peer, Tag tag, std::span<const std::byte> bytes) {
  // A stream of sends never writes to what an operation points to.
  return impl_->post(peer, true, tag, const_cast<std::byte*>(bytes.data()), bytes.size());
}

Result<Ticket> MeshTransport::post_recv(Rank peer, Tag tag, std::span<std::byte> bytes) {
  return impl_->post(peer, false, tag, bytes.data(), bytes.size());
}

Status MeshTransport::wait(Ticket ticket, Deadline deadline) {
  return impl_->wait(ticket, deadline);
}

void MeshTransport::abort(Status reason) noexcept { impl_->abort(std::move(reason)); }

}  // namespace allring
