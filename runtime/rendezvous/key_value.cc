#include "runtime/rendezvous/key_value.h"

#include <utility>

namespace allring {

void MemoryKeyValueMap::put(std::string key, std::string value) {
  std::vector<std::function<void(std::string)>> arrived;
  {
    std::lock_guard lock(mutex_);
    if (auto watches = watches_.find(key); watches != watches_.end()) {
      arrived = std::move(watches->second);
      watches_.erase(watches);
    }
    values_[std::move(key)] = value;
  }
  for (auto& each : arrived) each(value);
}

void MemoryKeyValueMap::watch(std::string key, std::function<void(std::string)> arrived) {
  std::string value;
  {
    std::lock_guard lock(mutex_);
    auto found = values_.find(key);
    if (found == values_.end()) {
      watches_[std::move(key)].push_back(std::move(arrived));
      return;
    }
    value = found->second;
  }
  arrived(std::move(value));
}

void MemoryKeyValueMap::remove(std::string_view key) {
  std::lock_guard lock(mutex_);
  if (auto found = values_.find(key); found != values_.end()) values_.erase(found);
}

}  // namespace allring
