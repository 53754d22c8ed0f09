#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "collectives/transport/endpoint.h"

namespace allring {

/// The endpoints of one job within the test's process.
class Endpoints {
 public:
  /// hosts[r]: the host that rank r pretends to be on. Ranks of different hosts meet over TCP on
  /// the loopback; with one host there are unix sockets only.
  explicit Endpoints(const std::vector<std::string>& hosts,
                     const std::function<void(Endpoint::Settings*)>& adjust = {}) {
    bool one_host = true;
    for (const std::string& host : hosts) one_host = one_host && host == hosts.front();
    std::vector<PeerInfo> infos;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      Endpoint::Settings settings;
      settings.rank = static_cast<Rank>(rank);
      settings.size = static_cast<int>(hosts.size());
      settings.hostname = hosts[rank];
      settings.host_key = hosts[rank];
      settings.secret = "a secret of the test's own";
      settings.reach = one_host ? Endpoint::Reach::kUnixOnly : Endpoint::Reach::kLoopback;
      if (adjust) adjust(&settings);
      endpoints_.push_back(Endpoint::start(settings).value());
      infos.push_back(endpoints_.back()->info());
    }
    for (auto& endpoint : endpoints_) endpoint->set_peers(infos);
  }

  int size() const { return static_cast<int>(endpoints_.size()); }
  Endpoint& operator[](Rank rank) { return *endpoints_[rank]; }
  /// Ends a rank as its process's death would.
  void end(Rank rank) { endpoints_[rank].reset(); }

 private:
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
};

/// body(rank) on a thread per rank; the results in rank order. Catch2's assertions are for the
/// caller.
template <typename Body>
auto on_ranks(int ranks, Body body) {
  using Value = decltype(body(0));
  std::vector<std::future<Value>> futures;
  for (Rank rank = 0; rank < ranks; ++rank) {
    futures.push_back(std::async(std::launch::async, body, rank));
  }
  std::vector<Value> values;
  for (auto& future : futures) values.push_back(future.get());
  return values;
}

inline Deadline soon() { return deadline_after(seconds(30)); }

}  // namespace allring
