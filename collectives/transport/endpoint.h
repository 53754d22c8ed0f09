#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/handshake.h"
#include "collectives/transport/peer_info.h"
#include "collectives/transport/socket.h"

namespace allring {

/// One rank's door: listens for connections of the job's other ranks and connects to theirs.
///
/// Always listens on an abstract unix socket with a random name, and, only where the job spans
/// hosts, on TCP. A thread of its own ("allring-accept") performs the handshakes of all arriving
/// connections side by side and files them by (channel, from_rank) until they are taken. Strangers
/// are dropped: each has a few seconds for its handshake, and a bounded number of them may try at
/// once.
///
/// Thread-safe.
class Endpoint {
 public:
  /// Where else than on the unix socket to listen.
  enum class Reach {
    kUnixOnly,  ///< a job on one host
    kLoopback,  ///< TCP over 127.0.0.1 and ::1, where ranks of one host cannot share unix sockets
    kNetwork,   ///< TCP on the chosen interfaces
  };

  struct Settings {
    Rank rank = 0;
    int size = 1;
    std::string hostname;
    std::string secret;  ///< empty: unix sockets and one user only
    std::uint32_t epoch = 0;
    Reach reach = Reach::kUnixOnly;
    std::string interfaces;  ///< for kNetwork: the option NETWORK_INTERFACES
    bool shared_memory = true;
    /// Instead of this_host_key(): lets one process play several hosts.
    std::string host_key;
    /// For one arriving connection to prove itself.
    nanoseconds handshake_timeout = seconds(10);
  };

  /// Listens and starts the thread.
  static Result<std::unique_ptr<Endpoint>> start(Settings settings);
  /// Closes what was not taken and joins the thread. REQUIRES: nobody is inside another method.
  ~Endpoint();

  /// For the others, to be sent to them by the rendezvous.
  const PeerInfo& info() const { return info_; }
  Rank rank() const { return info_.rank; }
  int size() const { return settings_.size; }

  /// The infos of all ranks, own included, once known. Called once, before the first connect().
  void set_peers(std::vector<PeerInfo> peers);
  /// REQUIRES: set_peers() has been called.
  const PeerInfo& peer(Rank rank) const;
  const std::vector<PeerInfo>& peers() const { return peers_; }

  /// A new connection to `peer` (not oneself) for `channel`. On the same host over the unix socket;
  /// else over the first of its addresses that answers, those in one of our networks first. Blocks
  /// until the peer's thread has let us in; it need not be in accept().
  /// @return kPeerLost naming rank, host, each address tried and what happened there; kTimedOut;
  ///         what abort() was given; kAborted once `cancel_fd` is readable.
  Result<Fd> connect(Rank peer, std::uint32_t channel, Deadline deadline, int cancel_fd = -1);

  /// Blocks until `from` has connected for `channel`; takes its connections in order of arrival.
  /// @return kTimedOut naming the rank and its host; what abort() was given.
  Result<Fd> accept(std::uint32_t channel, Rank from, Deadline deadline);
  /// The same without blocking: an empty Fd if there is none yet.
  Result<Fd> try_accept(std::uint32_t channel, Rank from);

  /// From now on `event_fd` is signalled whenever a connection for `channel` arrives, and at
  /// abort(); at once if one is there. unwatch() before closing it.
  void watch(std::uint32_t channel, int event_fd);
  void unwatch(std::uint32_t channel);

  /// Closes the connections for `channel` that nobody has taken, so that its number can be used
  /// anew. To be called when no peer uses it any more in the old sense.
  void discard(std::uint32_t channel);

  /// Makes every pending and later operation fail with `reason` and closes what was not taken. The
  /// first reason stays. Connections that were taken are not touched.
  void abort(Status reason) noexcept;
  /// Readable from abort() on: a Cancel for what socket.h does.
  int abort_fd() const { return abort_event_.get(); }
  /// What abort() was given, or ok.
  Status abort_reason() const;

 private:
  struct Pending;
  using Key = std::pair<std::uint32_t, Rank>;

  explicit Endpoint(Settings settings);
  Status listen();
  Status listen_network();
  void serve();
  Status admit(int listener, std::vector<Pending>* pending);
  void advance(std::vector<Pending>* pending);
  void file(const Hello& hello, Fd connection);
  std::string check(const Hello& hello) const;
  Result<Fd> connect_address(const PeerInfo& peer, const Hello& hello, const TcpAddress* address,
                             Deadline deadline, Cancel cancel);
  Result<Fd> connect_network(const PeerInfo& peer, const Hello& hello, Deadline deadline,
                             Cancel cancel);

  Settings settings_;
  PeerInfo info_;
  std::vector<PeerInfo> peers_;
  std::vector<Fd> listeners_;
  Fd stop_event_;   // signalled once, by the destructor
  Fd abort_event_;  // signalled once, by abort()

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<Key, std::deque<Fd>> filed_;
  std::map<std::uint32_t, int> watchers_;
  Status aborted_;

  std::thread thread_;
};

}  // namespace allring
