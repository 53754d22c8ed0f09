#include "runtime/negotiation/socket_control_channel.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <sstream>
#include <utility>

#include "collectives/base/check.h"

namespace allring {

namespace {

// Looked at so many times within the heartbeat's timeout.
constexpr int kBeatsPerTimeout = 8;
constexpr seconds kLastWords(1);
// Below this a wait is timed finer than epoll_wait can.
constexpr milliseconds kFineWait(10);
// What the epoll set calls its members: the number of a link, or of a link's process, or this.
constexpr std::uint32_t kWakeIndex = 0xffffffff;
constexpr std::uint32_t kProcessBit = 0x80000000;

int epoll_wait_until(int epoll, std::span<epoll_event> events, Deadline deadline) {
  int timeout_ms = -1;
  if (deadline != kNoDeadline) {
    const nanoseconds left =
        std::max<nanoseconds>(deadline - Clock::real().now(), nanoseconds::zero());
    if (left > nanoseconds::zero() && left < kFineWait) {
      pollfd readable{epoll, POLLIN, 0};
      const timespec time{0, static_cast<long>(left.count())};
      ppoll(&readable, 1, &time, nullptr);
      timeout_ms = 0;
    } else {
      const auto most = std::chrono::hours(1);
      timeout_ms = static_cast<int>(
          std::chrono::ceil<milliseconds>(std::min<nanoseconds>(left, most)).count());
    }
  }
  return epoll_wait(epoll, events.data(), static_cast<int>(events.size()), timeout_ms);
}

std::string in_seconds(nanoseconds duration) {
  std::ostringstream text;
  text << std::round(std::chrono::duration<double>(duration).count() * 10) / 10 << " s";
  return text.str();
}

}  // namespace

SocketControlChannel::SocketControlChannel(Rank rank, int size, nanoseconds heartbeat_timeout)
    : rank_(rank), size_(size), heartbeat_timeout_(heartbeat_timeout) {
  for (Rank child = 1; rank == 0 && child < size; ++child) children_.push_back(child);
}

Result<std::unique_ptr<SocketControlChannel>> SocketControlChannel::connect(Endpoint& endpoint,
                                                                            Settings settings,
                                                                            Deadline deadline) {
  const auto self = std::find(settings.members.begin(), settings.members.end(), endpoint.rank());
  ALLRING_CHECK(self != settings.members.end(), "this rank is a member of its process set");
  const Rank rank = static_cast<Rank>(self - settings.members.begin());
  const int size = static_cast<int>(settings.members.size());
  std::unique_ptr<SocketControlChannel> channel(
      new SocketControlChannel(rank, size, settings.heartbeat_timeout));
  ALLRING_RETURN_IF_ERROR(channel->open(endpoint, settings, deadline));
  return channel;
}

Status SocketControlChannel::open(Endpoint& endpoint, const Settings& settings, Deadline deadline) {
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return Status::from_errno("cannot make an epoll set", errno);
  ALLRING_ASSIGN_OR_RETURN(wake_event_, make_event());
  ALLRING_RETURN_IF_ERROR(watch(wake_event_.get(), kWakeIndex));
  const Rank first = rank_ == 0 ? 1 : 0;
  const Rank end = rank_ == 0 ? size_ : 1;
  for (Rank peer = first; peer < end; ++peer) {
    const Rank world_rank = settings.members[peer];
    Result<Fd> fd = rank_ == 0 ? endpoint.accept(settings.channel, world_rank, deadline)
                               : endpoint.connect(world_rank, settings.channel, deadline);
    if (!fd.ok()) return fd.status().with_prefix("control channel: ");
    ALLRING_RETURN_IF_ERROR(add_link(peer, world_rank, endpoint.peer(world_rank).describe(),
                                     endpoint.info().describe(), std::move(fd).value()));
  }
  last_poll_ = Clock::real().now();
  if (heartbeat_timeout_ > nanoseconds::zero())
    next_beat_ = last_poll_ + heartbeat_timeout_ / kBeatsPerTimeout;
  for (const auto& link : links_) link->forgive(last_poll_);
  return {};
}

Status SocketControlChannel::watch(int fd, std::uint32_t index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = index;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return Status::from_errno("cannot watch a control connection", errno);
}

Status SocketControlChannel::add_link(Rank peer, Rank world_rank, std::string name,
                                      std::string own_name, Fd fd) {
  auto link = std::make_unique<ControlLink>(peer, world_rank, std::move(name), std::move(own_name),
                                            std::move(fd), Clock::real().now());
  if (heartbeat_timeout_ > nanoseconds::zero()) link->watch_network(heartbeat_timeout_);
  link->polled_events = EPOLLIN;
  const auto index = static_cast<std::uint32_t>(links_.size());
  ALLRING_RETURN_IF_ERROR(watch(link->fd(), index));
  if (link->process_fd() >= 0)
    ALLRING_RETURN_IF_ERROR(watch(link->process_fd(), index | kProcessBit));
  links_.push_back(std::move(link));
  return {};
}

SocketControlChannel::~SocketControlChannel() {
  flush(deadline_after(kLastWords));
  // Closing a TCP socket with unread bytes would reset it, and with it what the peer has not read.
  std::vector<std::vector<std::byte>> unread;
  for (const auto& link : links_)
    if (!link->lost() && link->read(TimePoint(), &unread).ok()) link->close();
}

ControlLink* SocketControlChannel::link(Rank peer) {
  ALLRING_CHECK(peer >= 0 && peer < size_ && peer != rank_ && (peer == 0 || rank_ == 0),
                "the peer is no neighbour in the star");
  return links_[rank_ == 0 ? peer - 1 : 0].get();
}

void SocketControlChannel::send(Rank peer, std::span<const std::byte> bytes) {
  ControlLink* const to = link(peer);
  if (to->lost()) return;
  const bool queued_before = to->has_queued();
  to->queue(bytes);
  // The usual case: the socket takes it at once.
  if (!queued_before) to->write();
  update_events(*to);
}

void SocketControlChannel::wake() { signal_event(wake_event_.get()); }

ControlEvent SocketControlChannel::receive(Deadline deadline) {
  for (;;) {
    if (!events_.empty()) {
      ControlEvent event = std::move(events_.front());
      events_.pop_front();
      return event;
    }
    poll(std::min(deadline, next_beat_));
    if (events_.empty() && Clock::real().now() >= deadline) return {};
  }
}

void SocketControlChannel::poll(Deadline deadline) {
  std::array<epoll_event, 64> ready;
  const int count = epoll_wait_until(epoll_.get(), ready, deadline);
  const TimePoint now = Clock::real().now();
  // We were stopped, or busy elsewhere; what the others had to say may still be on its way.
  if (heartbeat_timeout_ > nanoseconds::zero() && now - last_poll_ > heartbeat_timeout_ / 2)
    for (const auto& each : links_) each->forgive(now);
  last_poll_ = now;
  for (int i = 0; i < count; ++i) {
    if (ready[i].data.u32 == kWakeIndex) {
      drain_event(wake_event_.get());
      ControlEvent woken;
      woken.kind = ControlEvent::Kind::kWoken;
      events_.push_back(std::move(woken));
    } else if (ready[i].data.u32 & kProcessBit) {
      bury(*links_[ready[i].data.u32 & ~kProcessBit]);
    } else {
      serve(*links_[ready[i].data.u32], ready[i].events);
    }
  }
  if (now >= next_beat_) beat();
}

void SocketControlChannel::serve(ControlLink& link, std::uint32_t events) {
  if (link.lost()) return;
  if (events & EPOLLOUT) link.write();
  if (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) read(link);
  if (!link.lost()) update_events(link);
}

void SocketControlChannel::bury(ControlLink& link) {
  while (!link.lost() && wait_ready(link.fd(), POLLIN, TimePoint()).ok()) read(link);
  if (!link.lost()) lose(link, link.lost_because("has ended"));
}

void SocketControlChannel::read(ControlLink& link) {
  std::vector<std::vector<std::byte>> messages;
  const Status status = link.read(last_poll_, &messages);
  for (std::vector<std::byte>& bytes : messages) {
    ControlEvent event;
    event.kind = ControlEvent::Kind::kMessage;
    event.peer = link.peer();
    event.bytes = std::move(bytes);
    events_.push_back(std::move(event));
  }
  if (!status.ok()) lose(link, status);
}

void SocketControlChannel::beat() {
  next_beat_ = last_poll_ + heartbeat_timeout_ / kBeatsPerTimeout;
  for (const auto& each : links_) {
    ControlLink& link = *each;
    if (link.lost()) continue;
    if (last_poll_ - link.last_heard() > heartbeat_timeout_) {
      // Its words may be here, only not read yet.
      read(link);
      if (link.lost()) continue;
      const nanoseconds silence = last_poll_ - link.last_heard();
      if (silence > heartbeat_timeout_) {
        lose(link, link.lost_because("has been silent for " + in_seconds(silence) +
                                     ": frozen, swapped out or cut off"));
        continue;
      }
    }
    if (link.take_spoken() || link.has_queued()) continue;
    link.queue_sign_of_life();
    link.write();
    update_events(link);
  }
}

void SocketControlChannel::update_events(ControlLink& link) {
  std::uint32_t wanted = EPOLLIN;
  if (link.has_queued()) wanted |= EPOLLOUT;
  if (wanted == link.polled_events) return;
  link.polled_events = wanted;
  epoll_event event{};
  event.events = wanted;
  event.data.u32 = static_cast<std::uint32_t>(rank_ == 0 ? link.peer() - 1 : 0);
  const int changed = epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link.fd(), &event);
  ALLRING_CHECK(changed == 0, "a control connection is in its epoll set");
}

void SocketControlChannel::lose(ControlLink& link, const Status& reason) {
  // Closing would not take it out of the epoll set while a forked process holds it open too.
  for (const int fd : {link.fd(), link.process_fd()})
    if (fd >= 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  link.close();
  ControlEvent event;
  event.kind = ControlEvent::Kind::kPeerLost;
  event.peer = link.peer();
  event.reason = reason;
  events_.push_back(std::move(event));
}

void SocketControlChannel::flush(Deadline deadline) {
  for (const auto& link : links_) {
    while (!link->lost() && link->has_queued()) {
      // Once the time is up, the others still get what they can take at once.
      if (!wait_ready(link->fd(), POLLOUT, deadline).ok()) break;
      link->write();
    }
  }
}

}  // namespace allring
