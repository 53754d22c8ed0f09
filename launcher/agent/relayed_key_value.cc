#include "launcher/agent/relayed_key_value.h"

#include <utility>

namespace allring {

void RelayedKeyValueMap::put(std::string key, std::string value) {
  launcher::AgentEvent event;
  event.mutable_key_put()->set_key(std::move(key));
  event.mutable_key_put()->set_value(std::move(value));
  send_(std::move(event));
}

void RelayedKeyValueMap::watch(std::string key, std::function<void(std::string)> arrived) {
  launcher::AgentEvent event;
  {
    std::lock_guard lock(mutex_);
    auto [known, added] = watch_of_key_.emplace(key, next_watch_);
    Watch& watch = watches_[known->second];
    watch.arrived.push_back(std::move(arrived));
    if (!added) return;
    watch.key = key;
    event.mutable_key_watch()->set_watch(next_watch_++);
    event.mutable_key_watch()->set_key(std::move(key));
  }
  send_(std::move(event));
}

void RelayedKeyValueMap::remove(std::string_view key) {
  launcher::AgentEvent event;
  event.mutable_key_remove()->set_key(std::string(key));
  send_(std::move(event));
}

void RelayedKeyValueMap::found(std::uint64_t watch, const std::string& value) {
  std::vector<std::function<void(std::string)>> arrived;
  {
    std::lock_guard lock(mutex_);
    auto known = watches_.find(watch);
    if (known == watches_.end()) return;
    arrived = std::move(known->second.arrived);
    watch_of_key_.erase(known->second.key);
    watches_.erase(known);
  }
  for (auto& each : arrived) each(value);
}

}  // namespace allring
