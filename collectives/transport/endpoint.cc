#include "collectives/transport/endpoint.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "collectives/base/log.h"
#include "collectives/base/thread.h"
#include "collectives/transport/core_mask.h"

namespace allring {

namespace {

constexpr std::size_t kMaxPending = 256;
/// A stranger that takes longer than this may lose its place to a newcomer when all are taken.
constexpr nanoseconds kPatience = seconds(1);
/// No descriptor was free: try again after this.
constexpr nanoseconds kExhaustedPause = milliseconds(100);
/// For one address while there are others left to try.
constexpr nanoseconds kFirstTry = seconds(2);

std::string random_name() {
  std::random_device random;
  std::string name = "allring-" + std::to_string(getpid()) + "-";
  static constexpr char kDigits[] = "0123456789abcdef";
  for (int i = 0; i < 4; ++i) {
    for (std::uint32_t word = random(), k = 0; k < 8; ++k, word >>= 4) name += kDigits[word & 15];
  }
  return name;
}

int milliseconds_until(TimePoint time) {
  if (time == kNoDeadline) return -1;
  const auto left = std::chrono::ceil<milliseconds>(time - Clock::real().now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace

/// An accepted connection that has not proven itself yet.
struct Endpoint::Pending {
  Fd connection;
  ServerHandshake handshake;
  TimePoint since;
  short events = POLLIN;
  bool finished = false;
};

Endpoint::Endpoint(Settings settings) : settings_(std::move(settings)) {}

Result<std::unique_ptr<Endpoint>> Endpoint::start(Settings settings) {
  ALLRING_CHECK(settings.rank >= 0 && settings.rank < settings.size, "a rank is below the size");
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(settings)));
  Status listening = endpoint->listen();
  if (!listening.ok()) {
    return listening.with_prefix("rank " + std::to_string(endpoint->settings_.rank) + " (host " +
                                 endpoint->settings_.hostname + "): ");
  }
  endpoint->thread_ = start_thread("allring-accept", [self = endpoint.get()] { self->serve(); });
  return endpoint;
}

Endpoint::~Endpoint() {
  if (!thread_.joinable()) return;
  signal_event(stop_event_.get());
  thread_.join();
}

Status Endpoint::listen() {
  ALLRING_ASSIGN_OR_RETURN(stop_event_, make_event());
  ALLRING_ASSIGN_OR_RETURN(abort_event_, make_event());
  info_.rank = settings_.rank;
  info_.hostname = settings_.hostname;
  info_.host_key = settings_.host_key;
  if (info_.host_key.empty()) {
    ALLRING_ASSIGN_OR_RETURN(info_.host_key, this_host_key());
  }
  info_.pid = getpid();
  info_.uid = geteuid();
  info_.shared_memory = settings_.shared_memory;
  info_.core_mask = this_core_mask();
  info_.unix_name = random_name();
  ALLRING_ASSIGN_OR_RETURN(Fd listener, listen_unix(info_.unix_name));
  listeners_.push_back(std::move(listener));
  return settings_.reach == Reach::kUnixOnly ? Status() : listen_network();
}

Status Endpoint::listen_network() {
  if (settings_.secret.empty()) {
    return Status::invalid_argument(
        "a job without a secret cannot listen on TCP; start it with hvdrun or give it one");
  }
  ALLRING_ASSIGN_OR_RETURN(
      const std::vector<PeerInfo::Address> addresses,
      interface_addresses(settings_.interfaces, settings_.reach == Reach::kLoopback));
  Status last;
  for (PeerInfo::Address address : addresses) {
    Result<Fd> listener = listen_tcp(address.tcp);
    if (!listener.ok()) {
      // An IPv6 address may still be unusable ("tentative") while its interface has others.
      last = listener.status();
      continue;
    }
    ALLRING_ASSIGN_OR_RETURN(address.tcp.port, local_port(listener->get()));
    info_.addresses.push_back(std::move(address));
    listeners_.push_back(*std::move(listener));
  }
  return info_.addresses.empty() ? last : Status();
}

void Endpoint::set_peers(std::vector<PeerInfo> peers) {
  ALLRING_CHECK(peers_.empty(), "set_peers() is called once");
  ALLRING_CHECK(static_cast<int>(peers.size()) == settings_.size, "one info per rank");
  peers_ = std::move(peers);
}

const PeerInfo& Endpoint::peer(Rank rank) const {
  ALLRING_CHECK(rank >= 0 && rank < static_cast<int>(peers_.size()), "peer() needs a known rank");
  return peers_[rank];
}

void Endpoint::serve() {
  std::vector<Pending> pending;
  TimePoint exhausted_until = TimePoint::min();
  while (true) {
    const TimePoint now = Clock::real().now();
    const bool accepting = now >= exhausted_until && (pending.size() < kMaxPending ||
                                                      pending.front().since + kPatience < now);
    TimePoint wake = kNoDeadline;
    if (now < exhausted_until) wake = exhausted_until;
    // `pending` is in order of arrival.
    if (!pending.empty()) {
      wake = std::min(wake, pending.front().since + settings_.handshake_timeout);
      if (pending.size() >= kMaxPending) wake = std::min(wake, pending.front().since + kPatience);
    }
    std::vector<pollfd> fds;
    fds.push_back({stop_event_.get(), POLLIN, 0});
    for (const Fd& listener : listeners_) {
      fds.push_back({accepting ? listener.get() : -1, POLLIN, 0});
    }
    for (const Pending& entry : pending) fds.push_back({entry.connection.get(), entry.events, 0});

    // EINTR cannot happen, signals being blocked here; other failures mean a wrong argument.
    const int ready = poll(fds.data(), fds.size(), milliseconds_until(wake));
    ALLRING_CHECK(ready >= 0 || errno == EINTR || errno == ENOMEM, "poll() was called wrongly");
    if (fds[0].revents != 0) return;

    advance(&pending);
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      if (fds[1 + i].revents == 0) continue;
      if (Status status = admit(listeners_[i].get(), &pending); !status.ok()) {
        ALLRING_LOG(kWarning, info_.describe() << " cannot take connections at the moment: "
                                               << status.message());
        exhausted_until = Clock::real().now() + kExhaustedPause;
      }
    }
  }
}

Status Endpoint::admit(int listener, std::vector<Pending>* pending) {
  // A few at a time, so that those being served are not kept waiting.
  for (int i = 0; i < 16; ++i) {
    const TimePoint now = Clock::real().now();
    if (pending->size() >= kMaxPending) {
      if (pending->front().since + kPatience >= now) return {};
      pending->erase(pending->begin());
    }
    ALLRING_ASSIGN_OR_RETURN(Fd connection, accept_connection(listener));
    if (!connection) return {};
    const int fd = connection.get();
    auto checked = [this](const Hello& hello) { return check(hello); };
    pending->push_back(
        {std::move(connection), ServerHandshake(fd, settings_.secret, checked), now});
  }
  return {};
}

void Endpoint::advance(std::vector<Pending>* pending) {
  const TimePoint now = Clock::real().now();
  for (Pending& entry : *pending) {
    const Result<ServerHandshake::Progress> progress = entry.handshake.advance();
    if (!progress.ok()) {
      ALLRING_LOG(kDebug, info_.describe()
                              << " dropped a connection: " << progress.status().message());
      entry.finished = true;
    } else if (*progress == ServerHandshake::Progress::kDone) {
      file(entry.handshake.hello(), std::move(entry.connection));
      entry.finished = true;
    } else {
      entry.events = *progress == ServerHandshake::Progress::kWantRead ? POLLIN : POLLOUT;
      entry.finished = entry.since + settings_.handshake_timeout <= now;
    }
  }
  std::erase_if(*pending, [](const Pending& entry) { return entry.finished; });
}

std::string Endpoint::check(const Hello& hello) const {
  const std::string me = "rank " + std::to_string(info_.rank);
  if (hello.epoch != settings_.epoch) {
    return me + " is in epoch " + std::to_string(settings_.epoch) + ", not " +
           std::to_string(hello.epoch);
  }
  if (hello.to_rank != info_.rank) {
    return "this is " + me + ", not rank " + std::to_string(hello.to_rank);
  }
  if (hello.from_rank < 0 || hello.from_rank >= settings_.size || hello.from_rank == info_.rank) {
    return me + " has no peer with rank " + std::to_string(hello.from_rank);
  }
  const Status aborted = abort_reason();
  return aborted.ok() ? std::string() : me + " has given up: " + aborted.message();
}

void Endpoint::file(const Hello& hello, Fd connection) {
  std::lock_guard lock(mutex_);
  if (!aborted_.ok()) return;
  filed_[{hello.channel, hello.from_rank}].push_back(std::move(connection));
  arrived_.notify_all();
  const auto watcher = watchers_.find(hello.channel);
  if (watcher != watchers_.end()) signal_event(watcher->second);
}

Result<Fd> Endpoint::connect(Rank peer, std::uint32_t channel, Deadline deadline, int cancel_fd) {
  ALLRING_CHECK(peer != info_.rank, "a rank does not connect to itself");
  const PeerInfo& info = this->peer(peer);
  const Hello hello{channel, info_.rank, peer, settings_.epoch};
  ALLRING_RETURN_IF_ERROR(abort_reason());
  const Cancel cancel(abort_event_.get(), cancel_fd);
  Result<Fd> connection = info.same_host(info_)
                              ? connect_address(info, hello, nullptr, deadline, cancel)
                              : connect_network(info, hello, deadline, cancel);
  if (connection.ok()) return connection;
  // The abort, not its symptom.
  ALLRING_RETURN_IF_ERROR(abort_reason());
  const std::string message =
      info_.describe() + " cannot reach " + info.describe() + ": " + connection.status().message();
  switch (connection.status().code()) {
    case StatusCode::kTimedOut:
      return Status::timed_out(message);
    case StatusCode::kPeerLost:
      return Status::peer_lost(peer, message);
    default:
      return Status(connection.status().code(), message);
  }
}

Result<Fd> Endpoint::connect_address(const PeerInfo& peer, const Hello& hello,
                                     const TcpAddress* address, Deadline deadline, Cancel cancel) {
  ALLRING_ASSIGN_OR_RETURN(Fd connection, address != nullptr
                                              ? connect_tcp(*address, deadline, cancel)
                                              : connect_unix(peer.unix_name, deadline, cancel));
  const Status proven =
      client_handshake(connection.get(), settings_.secret, hello, deadline, cancel);
  if (proven.ok()) return connection;
  return proven.with_prefix((address != nullptr ? address->to_string() : "@" + peer.unix_name) +
                            ": ");
}

Result<Fd> Endpoint::connect_network(const PeerInfo& peer, const Hello& hello, Deadline deadline,
                                     Cancel cancel) {
  std::vector<PeerInfo::Address> addresses = peer.addresses;
  std::stable_partition(addresses.begin(), addresses.end(), [this](const auto& theirs) {
    return std::any_of(info_.addresses.begin(), info_.addresses.end(),
                       [&](const auto& mine) { return same_network(mine, theirs); });
  });
  if (addresses.empty()) {
    return Status::invalid_argument(
        "the two cannot share unix sockets (other host, container or user), and the peer listens "
        "on no network: its job was started as one on a single host");
  }
  std::string failures;
  bool timed_out = false;
  // First a short try of each; packets to an address in the wrong network may vanish without an
  // answer. Then as long as there is time, for those that did not answer at all.
  for (const bool patient : {false, true}) {
    failures.clear();
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const TimePoint now = Clock::real().now();
      Deadline limit = deadline;
      if (!patient) limit = std::min(limit, now + kFirstTry);
      if (patient && deadline != kNoDeadline) {
        limit = now + std::max(deadline - now, nanoseconds(0)) /
                          static_cast<std::int64_t>(addresses.size() - i);
      }
      Result<Fd> connection = connect_address(peer, hello, &addresses[i].tcp, limit, cancel);
      if (connection.ok() || connection.status().code() == StatusCode::kAborted) return connection;
      timed_out = timed_out || connection.status().code() == StatusCode::kTimedOut;
      failures += (failures.empty() ? "" : "; ") + connection.status().message();
    }
    if (!timed_out) return Status(StatusCode::kPeerLost, failures);
    timed_out = false;
  }
  return Status::timed_out(failures);
}

Result<Fd> Endpoint::try_accept(std::uint32_t channel, Rank from) {
  std::lock_guard lock(mutex_);
  ALLRING_RETURN_IF_ERROR(aborted_);
  const auto entry = filed_.find({channel, from});
  if (entry == filed_.end()) return Fd();
  Fd connection = std::move(entry->second.front());
  entry->second.pop_front();
  if (entry->second.empty()) filed_.erase(entry);
  return connection;
}

Result<Fd> Endpoint::accept(std::uint32_t channel, Rank from, Deadline deadline) {
  while (true) {
    ALLRING_ASSIGN_OR_RETURN(Fd connection, try_accept(channel, from));
    if (connection) return connection;
    std::unique_lock lock(mutex_);
    const auto there = [&] { return !aborted_.ok() || filed_.count({channel, from}) > 0; };
    if (deadline == kNoDeadline) {
      arrived_.wait(lock, there);
    } else if (!arrived_.wait_until(lock, deadline, there)) {
      const bool known = from < static_cast<int>(peers_.size());
      return Status::timed_out(info_.describe() + " waited in vain for a connection from " +
                               (known ? peers_[from].describe() : "rank " + std::to_string(from)));
    }
  }
}

void Endpoint::watch(std::uint32_t channel, int event_fd) {
  std::lock_guard lock(mutex_);
  ALLRING_CHECK(watchers_.emplace(channel, event_fd).second, "a channel has one watcher");
  const auto first = filed_.lower_bound({channel, 0});
  const bool there = first != filed_.end() && first->first.first == channel;
  if (there || !aborted_.ok()) signal_event(event_fd);
}

void Endpoint::unwatch(std::uint32_t channel) {
  std::lock_guard lock(mutex_);
  watchers_.erase(channel);
}

void Endpoint::discard(std::uint32_t channel) {
  std::lock_guard lock(mutex_);
  filed_.erase(filed_.lower_bound({channel, 0}), filed_.upper_bound({channel, settings_.size}));
}

void Endpoint::abort(Status reason) noexcept {
  std::lock_guard lock(mutex_);
  if (!aborted_.ok()) return;
  aborted_ = std::move(reason);
  filed_.clear();
  signal_event(abort_event_.get());
  for (const auto& [channel, event_fd] : watchers_) signal_event(event_fd);
  arrived_.notify_all();
}

Status Endpoint::abort_reason() const {
  std::lock_guard lock(mutex_);
  return aborted_;
}

}  // namespace allring
