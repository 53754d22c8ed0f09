#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/socket.h"
#include "collectives/transport/store.h"
#include "runtime/rendezvous/store_protocol.h"

namespace allring {

/// A Store that a StoreServer serves, over one connection and with one thread ("allring-kv") that
/// reads answers. Thread-safe: puts and waits of several threads proceed at the same time.
class StoreClient final : public Store {
 public:
  struct Settings {
    /// Addresses (see StoreAddress) where the server may be.
    std::vector<std::string> candidates;
    /// Empty: unix sockets of the own user only.
    std::string secret;
    Rank rank = 0;
    /// For put() and remove(), which an idle server answers at once.
    nanoseconds request_timeout = seconds(30);
  };

  /// Connects to the first candidate that is a server with this secret. Tries all of them again
  /// and again, names of hosts looked up anew, until the deadline: the server may start later
  /// than this process. Candidates that answer but are not our server are passed over.
  /// @return kTimedOut saying what happened at each candidate, kInvalidArgument.
  static Result<std::unique_ptr<StoreClient>> connect(const Settings& settings, Deadline deadline);

  ~StoreClient() override;

  /// The candidate that it is connected to.
  const std::string& address() const { return address_; }

  Status put(std::string_view key, std::string_view value) override;
  Result<std::string> wait(std::string_view key, Deadline deadline) override;
  Status remove(std::string_view key) override;

  /// Several at once, one round trip in all.
  Status put_each(const std::vector<std::pair<std::string, std::string>>& entries);
  Status remove_each(const std::vector<std::string>& keys);

  /// Waits for all `keys` at once, one round trip in all. Keys that had not come at the deadline
  /// are nullopt. @return kPeerLost if the server is gone.
  Result<std::vector<std::optional<std::string>>> wait_each(const std::vector<std::string>& keys,
                                                            Deadline deadline);

 private:
  struct Answer {
    bool arrived = false;
    std::string value;
  };

  StoreClient(Fd fd, Fd stop, std::string address, nanoseconds request_timeout);
  void read_answers();
  Status read_once();
  void take(const StoreFrame& frame);
  void fail(const Status& reason);
  std::uint32_t expect();
  Status send(const StoreFrame& frame, Deadline deadline);
  Status request(std::vector<StoreFrame> frames);
  /// Blocks until the answer `id` is there and takes it; nullopt at the deadline.
  Result<std::optional<std::string>> answer(std::uint32_t id, Deadline deadline);

  const Fd fd_;
  const Fd stop_;
  const std::string address_;
  const nanoseconds request_timeout_;
  StoreFrameReader reader_;  // the thread's

  std::mutex sending_;  // held while a frame is written, so that frames stay whole

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::uint32_t, Answer> answers_;  // that somebody wants
  std::uint32_t next_id_ = 1;
  Status failure_;

  std::thread thread_;
};

}  // namespace allring
