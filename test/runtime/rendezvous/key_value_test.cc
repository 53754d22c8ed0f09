#include "runtime/rendezvous/key_value.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

namespace allring {
namespace {

TEST_CASE("a watch is called once, at once or when the key comes") {
  MemoryKeyValueMap map;
  std::vector<std::string> seen;
  map.watch("k", [&](std::string value) { seen.push_back("early " + value); });
  CHECK(seen.empty());
  map.put("k", "1");
  map.put("k", "2");
  map.watch("k", [&](std::string value) { seen.push_back("late " + value); });
  CHECK(seen == std::vector<std::string>{"early 1", "late 2"});
}

TEST_CASE("a removed key is gone, and a watch waits for the next put") {
  MemoryKeyValueMap map;
  map.put("k", "1");
  map.remove("k");
  map.remove("unknown");
  std::string seen;
  map.watch("k", [&](std::string value) { seen = value; });
  CHECK(seen.empty());
  map.put("k", "2");
  CHECK(seen == "2");
}

TEST_CASE("a watch may use the map") {
  MemoryKeyValueMap map;
  std::string seen;
  map.watch("a", [&](std::string value) { map.put("b", value + "!"); });
  map.watch("b", [&](std::string value) { seen = value; });
  map.put("a", "x");
  CHECK(seen == "x!");
}

TEST_CASE("puts and watches race without loss") {
  MemoryKeyValueMap map;
  constexpr int kKeys = 2000;
  std::atomic<int> seen{0};
  std::thread putter([&] {
    for (int i = 0; i < kKeys; ++i) map.put(std::to_string(i), "v");
  });
  for (int i = kKeys - 1; i >= 0; --i) map.watch(std::to_string(i), [&](std::string) { ++seen; });
  putter.join();
  CHECK(seen == kKeys);
}

}  // namespace
}  // namespace allring
