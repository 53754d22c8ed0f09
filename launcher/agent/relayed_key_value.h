#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/agent.pb.h"
#include "runtime/rendezvous/key_value.h"

namespace allring {

/// The driver's KeyValueMap as an agent's ranks see it: every call travels over the agent's stream.
/// All watches of one key that wait at the same time share one message. Thread-safe.
class RelayedKeyValueMap final : public KeyValueMap {
 public:
  /// @param send puts an event on the stream; thread-safe, does not block.
  explicit RelayedKeyValueMap(std::function<void(launcher::AgentEvent)> send)
      : send_(std::move(send)) {}

  void put(std::string key, std::string value) override;
  void watch(std::string key, std::function<void(std::string)> arrived) override;
  void remove(std::string_view key) override;

  /// The driver's answer to a watch.
  void found(std::uint64_t watch, const std::string& value);

 private:
  struct Watch {
    std::string key;
    std::vector<std::function<void(std::string)>> arrived;
  };

  std::function<void(launcher::AgentEvent)> send_;
  std::mutex mutex_;
  std::uint64_t next_watch_ = 1;
  std::map<std::uint64_t, Watch> watches_;
  std::map<std::string, std::uint64_t> watch_of_key_;
};

}  // namespace allring
