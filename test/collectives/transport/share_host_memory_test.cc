#include "collectives/transport/share_host_memory.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "test/collectives/transport/endpoints.h"

namespace allring {
namespace {

using Shared = Result<std::unique_ptr<HostMemory>>;

std::vector<Shared> share(Endpoints& endpoints, const std::vector<Rank>& members,
                          std::size_t slot_bytes) {
  return on_ranks(static_cast<int>(members.size()), [&](int index) -> Shared {
    return share_host_memory(endpoints[members[index]], 1, members,
                             {.ranks = 1, .buffers = 3, .slot_bytes = slot_bytes}, {}, soon());
  });
}

TEST_CASE("the ranks of one host see each other's slots and flags") {
  Endpoints endpoints({"a", "b", "a", "a"});
  std::vector<Shared> shared = share(endpoints, {0, 2, 3}, 64 << 10);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(shared[i].status().to_string() == "ok");
    REQUIRE(*shared[i] != nullptr);
    CHECK((*shared[i])->rank() == i);
    CHECK((*shared[i])->ranks() == 3);
    CHECK((*shared[i])->slot_bytes() == 64 << 10);
    (*shared[i])->slot(2, i)[65535] = static_cast<std::byte>(10 + i);
    (*shared[i])->post(0, 7);
  }
  for (int i = 0; i < 3; ++i) {
    for (int owner = 0; owner < 3; ++owner) {
      CHECK((*shared[i])->wait_at_least(0, owner, 7, soon()).ok());
      CHECK((*shared[i])->slot(2, owner)[65535] == static_cast<std::byte>(10 + owner));
    }
  }
}

TEST_CASE("one who may not share makes all go without") {
  Endpoints endpoints({"a", "a", "a"}, [](Endpoint::Settings* settings) {
    settings->shared_memory = settings->rank != 2;
  });
  for (Shared& shared : share(endpoints, {0, 1, 2}, 64 << 10)) {
    REQUIRE(shared.ok());
    CHECK(*shared == nullptr);
  }
  for (Shared& shared : share(endpoints, {0, 1}, 64 << 10)) CHECK(*shared != nullptr);
  CHECK(*share(endpoints, {0}, 64 << 10).front() == nullptr);
}

TEST_CASE("too little memory: smaller slots, then none") {
  Endpoints endpoints({"a", "a"});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit low = before;
  low.rlim_cur = 1 << 20;  // 6 slots of 256 KiB do not fit, of 128 KiB they do
  setrlimit(RLIMIT_FSIZE, &low);
  std::vector<Shared> smaller = share(endpoints, {0, 1}, 256 << 10);
  low.rlim_cur = 64 << 10;
  setrlimit(RLIMIT_FSIZE, &low);
  std::vector<Shared> none = share(endpoints, {0, 1}, 256 << 10);
  setrlimit(RLIMIT_FSIZE, &before);
  for (Shared& shared : smaller) {
    REQUIRE(shared.ok());
    REQUIRE(*shared != nullptr);
    CHECK((*shared)->slot_bytes() == 128 << 10);
  }
  for (Shared& shared : none) {
    REQUIRE(shared.ok());
    CHECK(*shared == nullptr);
  }
}

TEST_CASE("a rank that is gone or silent is named") {
  Endpoints endpoints({"a", "a", "a"});
  const Shared waited =
      share_host_memory(endpoints[1], 1, {0, 1, 2}, {}, {}, deadline_after(milliseconds(50)));
  CHECK(waited.status().code() == StatusCode::kTimedOut);
  CHECK_THAT(waited.status().message(), Catch::Contains("rank 0 (host a"));

  endpoints.end(2);
  const Shared lost = share_host_memory(endpoints[0], 1, {0, 1, 2}, {}, {}, soon());
  CHECK(lost.status().code() == StatusCode::kPeerLost);
  CHECK(lost.status().lost_rank() == 2);
}

TEST_CASE("an abort ends the wait with its reason") {
  Endpoints endpoints({"a", "a"});
  // Rank 1's endpoint lets rank 0 connect, but nobody answers there.
  auto waiting = std::async(std::launch::async, [&] {
    return share_host_memory(endpoints[0], 1, {0, 1}, {}, {}, soon()).status();
  });
  const Result<Fd> unanswered = endpoints[1].accept((1u << 31) | 1, 0, soon());
  REQUIRE(unanswered.ok());
  endpoints[0].abort(Status::aborted("the test is over"));
  CHECK(waiting.get().message() == "the test is over");
}

}  // namespace
}  // namespace allring
