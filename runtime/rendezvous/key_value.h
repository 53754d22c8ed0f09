#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace allring {

/// What a StoreServer serves: the keys of one job. The map in memory below is one; another relays
/// to a map elsewhere. Thread-safe; no call blocks for long, and none waits for a key.
class KeyValueMap {
 public:
  virtual ~KeyValueMap() = default;

  /// Makes `key` readable; a second put replaces the value.
  virtual void put(std::string key, std::string value) = 0;

  /// Calls `arrived` exactly once with the value of `key`: from within this call if the key is
  /// there, else from whichever thread puts it. `arrived` must not block, and no lock of the map is
  /// held while it runs. It is dropped uncalled if the map ends first, or if a map that relays
  /// loses its source.
  virtual void watch(std::string key, std::function<void(std::string)> arrived) = 0;

  /// Forgets `key`; unknown keys are fine. Watches of it stay, for the next put.
  virtual void remove(std::string_view key) = 0;
};

/// A KeyValueMap in this process.
class MemoryKeyValueMap final : public KeyValueMap {
 public:
  void put(std::string key, std::string value) override;
  void watch(std::string key, std::function<void(std::string)> arrived) override;
  void remove(std::string_view key) override;

 private:
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::vector<std::function<void(std::string)>>, std::less<>> watches_;
};

}  // namespace allring
