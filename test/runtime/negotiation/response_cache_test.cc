#include "runtime/negotiation/response_cache.h"

#include <catch2/catch.hpp>

using namespace allring;

namespace {

Request named(const std::string& name) {
  Request request;
  request.name = name;
  request.shape = {2};
  return request;
}

}  // namespace

TEST_CASE("the cache finds by name and by number") {
  ResponseCache cache;
  CHECK(cache.find("a") == nullptr);
  CHECK(cache.at(0) == nullptr);
  cache.remember(3, named("a"), {1, 2});
  CacheId id = 0;
  REQUIRE(cache.find("a", &id) != nullptr);
  CHECK(id == 3);
  CHECK(cache.at(3)->sizes == std::vector<std::int64_t>{1, 2});
  CHECK(cache.at(2) == nullptr);
  CHECK(cache.size() == 1);
}

TEST_CASE("a number has one name and a name one number") {
  ResponseCache cache;
  cache.remember(0, named("a"), {});
  cache.remember(0, named("b"), {});
  CHECK(cache.find("a") == nullptr);
  CHECK(cache.at(0)->request.name == "b");
  cache.remember(5, named("b"), {});
  CHECK(cache.at(0) == nullptr);
  CHECK(cache.at(5)->request.name == "b");
  CHECK(cache.size() == 1);
  // A changed shape renews one entry.
  Request wider = named("b");
  wider.shape = {9};
  cache.remember(5, wider, {});
  CHECK(cache.at(5)->request.shape[0] == 9);
  CHECK(cache.size() == 1);
}

TEST_CASE("what other ranks submitted can be told from an entry") {
  ResponseCache::Entry gather{named("g"), {4, 0, 7}};
  gather.request.kind = CollectiveKind::kAllgather;
  gather.request.shape = {4, 3};
  CHECK(remembered_request(gather, 2, 3).shape == std::vector<std::int64_t>{7, 3});
  ResponseCache::Entry exchange{named("x"), {1, 2, 3, 4}};
  exchange.request.kind = CollectiveKind::kAlltoall;
  exchange.request.shape = {3};
  exchange.request.splits = {1, 2};
  const Request second = remembered_request(exchange, 1, 2);
  CHECK(second.splits == std::vector<std::int64_t>{3, 4});
  CHECK(second.shape[0] == 7);
  const ResponseCache::Entry reduce{named("r"), {}};
  CHECK(remembered_request(reduce, 1, 2) == reduce.request);
}

TEST_CASE("the number used longest ago is given up first") {
  CacheIds ids(3);
  CHECK(ids.choose() == 0u);
  CHECK(ids.choose() == 1u);
  CHECK(ids.choose() == 2u);
  ids.touch(0);
  CHECK(ids.choose() == 1u);
  CHECK(ids.choose() == 2u);
  CHECK(ids.choose() == 0u);
}

TEST_CASE("pinned numbers stay") {
  CacheIds ids(2);
  ids.choose();
  ids.choose();
  ids.pin(0);
  CHECK(ids.choose() == 1u);
  ids.pin(1);
  CHECK(!ids.choose());
  ids.unpin(0);
  CHECK(ids.choose() == 0u);
}

TEST_CASE("no capacity, no numbers") {
  CacheIds ids(0);
  CHECK(!ids.choose());
}
