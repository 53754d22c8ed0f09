#include "runtime/rendezvous/store_server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/base/check.h"
#include "collectives/base/log.h"
#include "collectives/base/thread.h"
#include "runtime/rendezvous/store_address.h"
#include "runtime/rendezvous/store_connection.h"

namespace allring {

namespace {

// A client has long proven itself by then; a stranger makes room for others.
constexpr seconds kHandshakeTime(10);
constexpr seconds kHandshakeTimeWhenCrowded(1);
constexpr std::size_t kHandshakesAtOnce = 256;
// A listener that the system had no descriptor for is looked at again after this.
constexpr milliseconds kListenerPause(100);
// Keys that one connection waits for, and what is kept with each.
constexpr std::size_t kPendingBytes = 16 << 20;
constexpr std::size_t kPendingOverheadBytes = 128;

using Value = StoreConnection::Value;

/// Where the watches of a KeyValueMap, called on any thread, leave what arrived. Outlives the
/// server, because a watch cannot be taken back.
class Arrivals {
 public:
  explicit Arrivals(Fd event) : event_(std::move(event)) {}

  int event() const { return event_.get(); }

  void add(std::string key, std::string value) {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    arrived_.emplace_back(std::move(key), std::make_shared<const std::string>(std::move(value)));
    signal_event(event_.get());
  }

  std::vector<std::pair<std::string, Value>> take() {
    drain_event(event_.get());
    std::lock_guard lock(mutex_);
    return std::exchange(arrived_, {});
  }

  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    arrived_.clear();
  }

 private:
  const Fd event_;
  std::mutex mutex_;
  bool closed_ = false;
  std::vector<std::pair<std::string, Value>> arrived_;
};

Result<std::vector<Fd>> listen_at(StoreAddress* address) {
  std::vector<Fd> listeners;
  if (address->is_unix) {
    ALLRING_ASSIGN_OR_RETURN(Fd listener, listen_unix(address->name));
    listeners.push_back(std::move(listener));
    return listeners;
  }
  std::vector<std::string> hosts = {address->host};
  if (address->host.empty()) hosts = {"0.0.0.0", "::"};
  if (address->host == "localhost") hosts = {"127.0.0.1"};
  for (const std::string& host : hosts) {
    Result<Fd> listener = listen_tcp({host, address->port});
    // A system without IPv6 is fine.
    if (!listener.ok() && !listeners.empty()) break;
    if (!listener.ok()) return listener.status();
    ALLRING_ASSIGN_OR_RETURN(address->port, local_port(listener->get()));
    listeners.push_back(std::move(listener).value());
  }
  return listeners;
}

}  // namespace

class StoreServer::Loop {
 public:
  Loop(StoreAddress address, std::string secret, KeyValueMap& map, std::vector<Fd> listeners)
      : address_(std::move(address)),
        secret_(std::move(secret)),
        map_(map),
        listeners_(std::move(listeners)) {}

  ~Loop() {
    if (thread_.joinable()) {
      signal_event(stop_.get());
      thread_.join();
    }
    if (arrivals_) arrivals_->close();
  }

  Status start() {
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return Status::from_errno("the store cannot make an epoll set", errno);
    ALLRING_ASSIGN_OR_RETURN(stop_, make_event());
    ALLRING_ASSIGN_OR_RETURN(Fd arrived, make_event());
    arrivals_ = std::make_shared<Arrivals>(std::move(arrived));
    ALLRING_RETURN_IF_ERROR(watch_fd(EPOLL_CTL_ADD, stop_.get(), EPOLLIN, kStop));
    ALLRING_RETURN_IF_ERROR(watch_fd(EPOLL_CTL_ADD, arrivals_->event(), EPOLLIN, kArrivals));
    for (const Fd& listener : listeners_)
      ALLRING_RETURN_IF_ERROR(watch_fd(EPOLL_CTL_ADD, listener.get(), EPOLLIN, kListeners));
    thread_ = start_thread("allring-store", [this] { run(); });
    return {};
  }

  std::string address() const { return address_.to_string(); }

 private:
  // Numbers a connection; never used twice, unlike a descriptor.
  using Id = std::uint64_t;
  enum : Id { kStop, kArrivals, kListeners, kFirstConnection };

  struct Client {
    StoreConnection connection;
    std::uint32_t events;
    std::map<std::uint32_t, std::string> waits;  // request id to key
    std::size_t pending_bytes = 0;
  };

  Status watch_fd(int operation, int fd, std::uint32_t events, Id id) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    if (epoll_ctl(epoll_.get(), operation, fd, &event) == 0) return {};
    return Status::from_errno("the store cannot watch a connection", errno);
  }

  void run();
  int next_timer_ms();
  void expire();
  void accept_all();
  void listen(bool on);
  void serve(Id id);
  void close(Id id, const Status& why);
  Status take(Id id, Client& client, const StoreFrame& frame);
  Status wait_for(Id id, Client& client, std::uint32_t request, std::string key);
  void forget(Id id, Client& client, std::uint32_t request);
  void deliver(const std::string& key, const Value& value);

  StoreAddress address_;
  const std::string secret_;
  KeyValueMap& map_;
  std::vector<Fd> listeners_;
  Fd epoll_;
  Fd stop_;
  std::shared_ptr<Arrivals> arrivals_;

  // The thread's own.
  std::map<Id, Client> clients_;
  std::map<Id, TimePoint> unproven_;  // oldest first
  // Who waits for each key that the map was asked to watch. A key stays after all who waited for it
  // have left, so that the map is asked once.
  std::map<std::string, std::vector<std::pair<Id, std::uint32_t>>, std::less<>> waiting_;
  Id next_id_ = kFirstConnection;
  bool listening_ = true;
  TimePoint listen_again_{};

  std::thread thread_;
};

void StoreServer::Loop::run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), next_timer_ms());
    for (int i = 0; i < count; ++i) {
      switch (const Id id = events[i].data.u64) {
        case kStop:
          // What was put before the end is sent before the end.
          for (const auto& [key, value] : arrivals_->take()) deliver(key, value);
          return;
        case kArrivals:
          for (const auto& [key, value] : arrivals_->take()) deliver(key, value);
          break;
        case kListeners:
          accept_all();
          break;
        default:
          serve(id);
      }
    }
    expire();
  }
}

int StoreServer::Loop::next_timer_ms() {
  TimePoint next = listening_ ? kNoDeadline : listen_again_;
  if (!unproven_.empty()) {
    const bool crowded = unproven_.size() >= kHandshakesAtOnce;
    next = std::min(
        next, unproven_.begin()->second + (crowded ? kHandshakeTimeWhenCrowded : kHandshakeTime));
  }
  if (next == kNoDeadline) return -1;
  const auto left = std::chrono::ceil<milliseconds>(next - Clock::real().now());
  return static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
}

void StoreServer::Loop::expire() {
  const TimePoint now = Clock::real().now();
  while (!unproven_.empty()) {
    const bool crowded = unproven_.size() >= kHandshakesAtOnce;
    const auto [id, since] = *unproven_.begin();
    if (now < since + (crowded ? kHandshakeTimeWhenCrowded : kHandshakeTime)) break;
    close(id, Status::timed_out("it did not prove itself"));
  }
  if (!listening_ && now >= listen_again_ && unproven_.size() < kHandshakesAtOnce) listen(true);
}

void StoreServer::Loop::listen(bool on) {
  listening_ = on;
  for (const Fd& listener : listeners_) {
    const std::uint32_t events = on ? std::uint32_t{EPOLLIN} : 0;
    const Status watched = watch_fd(EPOLL_CTL_MOD, listener.get(), events, kListeners);
    ALLRING_CHECK(watched.ok(), "a listener is in the epoll set");
  }
}

void StoreServer::Loop::accept_all() {
  const TimePoint now = Clock::real().now();
  for (const Fd& listener : listeners_) {
    for (;;) {
      if (unproven_.size() >= kHandshakesAtOnce) {
        listen_again_ = now;
        return listen(false);
      }
      Result<Fd> accepted = accept_connection(listener.get());
      if (!accepted.ok()) {
        ALLRING_LOG(kWarning, "the store at " << address() << " cannot accept a connection: "
                                              << accepted.status().message());
        listen_again_ = now + kListenerPause;
        return listen(false);
      }
      if (!*accepted) break;
      const Id id = next_id_++;
      const int fd = accepted->get();
      clients_.emplace(id,
                       Client{StoreConnection(std::move(*accepted), secret_, now), EPOLLIN, {}, 0});
      unproven_.emplace(id, now);
      const Status watched = watch_fd(EPOLL_CTL_ADD, fd, EPOLLIN, id);
      if (!watched.ok()) close(id, watched);
    }
  }
}

void StoreServer::Loop::serve(Id id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  Client& client = found->second;
  Status status =
      client.connection.advance([&](const StoreFrame& frame) { return take(id, client, frame); });
  if (client.connection.proven()) unproven_.erase(id);
  const std::uint32_t events = client.connection.wanted_events();
  if (status.ok() && events != client.events) {
    client.events = events;
    status = watch_fd(EPOLL_CTL_MOD, client.connection.fd(), events, id);
  }
  if (!status.ok()) close(id, status);
}

void StoreServer::Loop::close(Id id, const Status& why) {
  const auto found = clients_.find(id);
  ALLRING_LOG(kDebug, "the store at " << address() << " closes a connection: " << why.message());
  while (!found->second.waits.empty())
    forget(id, found->second, found->second.waits.begin()->first);
  unproven_.erase(id);
  clients_.erase(found);
}

Status StoreServer::Loop::take(Id id, Client& client, const StoreFrame& frame) {
  switch (frame.type) {
    case StoreFrameType::kPut:
      map_.put(std::string(frame.key), std::string(frame.value));
      client.connection.answer(StoreFrameType::kOk, frame.id);
      return {};
    case StoreFrameType::kRemove:
      map_.remove(frame.key);
      client.connection.answer(StoreFrameType::kOk, frame.id);
      return {};
    case StoreFrameType::kWait:
      return wait_for(id, client, frame.id, std::string(frame.key));
    case StoreFrameType::kCancel:
      forget(id, client, frame.id);
      return {};
    default:
      return Status::invalid_argument("the client sent an answer");
  }
}

Status StoreServer::Loop::wait_for(Id id, Client& client, std::uint32_t request, std::string key) {
  client.pending_bytes += key.size() + kPendingOverheadBytes;
  if (client.pending_bytes > kPendingBytes)
    return Status::invalid_argument("the client waits for too many keys");
  if (!client.waits.emplace(request, key).second)
    return Status::invalid_argument("the client used a request id twice");
  const auto [entry, unwatched] = waiting_.try_emplace(key);
  entry->second.emplace_back(id, request);
  if (unwatched)
    map_.watch(key, [arrivals = arrivals_, key](std::string value) {
      arrivals->add(key, std::move(value));
    });
  return {};
}

void StoreServer::Loop::forget(Id id, Client& client, std::uint32_t request) {
  const auto found = client.waits.find(request);
  if (found == client.waits.end()) return;
  client.pending_bytes -= found->second.size() + kPendingOverheadBytes;
  if (const auto entry = waiting_.find(found->second); entry != waiting_.end())
    std::erase(entry->second, std::pair(id, request));
  client.waits.erase(found);
}

void StoreServer::Loop::deliver(const std::string& key, const Value& value) {
  const auto entry = waiting_.find(key);
  if (entry == waiting_.end()) return;
  const auto waiters = std::move(entry->second);
  waiting_.erase(entry);
  for (const auto& [id, request] : waiters) {
    // Serving one waiter may close it or take a cancellation from it.
    const auto found = clients_.find(id);
    if (found == clients_.end() || found->second.waits.erase(request) == 0) continue;
    found->second.pending_bytes -= key.size() + kPendingOverheadBytes;
    found->second.connection.answer(StoreFrameType::kValue, request, value);
    serve(id);
  }
}

Result<std::unique_ptr<StoreServer>> StoreServer::listen(const std::string& address,
                                                         std::string secret, KeyValueMap& map) {
  ALLRING_ASSIGN_OR_RETURN(StoreAddress parsed, StoreAddress::parse(address));
  if (secret.empty() && !parsed.is_unix)
    return Status::invalid_argument("a store on TCP (" + address + ") needs a secret");
  Result<std::vector<Fd>> listeners = listen_at(&parsed);
  if (!listeners.ok()) return listeners.status().with_prefix("store at " + address + ": ");
  auto loop = std::make_unique<Loop>(std::move(parsed), std::move(secret), map,
                                     std::move(listeners).value());
  ALLRING_RETURN_IF_ERROR(loop->start());
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(loop)));
}

StoreServer::StoreServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

StoreServer::~StoreServer() = default;

std::string StoreServer::address() const { return loop_->address(); }

}  // namespace allring
