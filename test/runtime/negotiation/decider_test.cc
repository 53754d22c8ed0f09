#include "runtime/negotiation/decider.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

using namespace allring;

namespace {

TimePoint at(double second) {
  return TimePoint(nanoseconds(static_cast<std::int64_t>(second * 1e9)));
}

Decider::Settings settings(int size, std::size_t capacity = 100) {
  Decider::Settings result;
  result.members.resize(size);
  std::iota(result.members.begin(), result.members.end(), 0);
  for (int i = 0; i < size; ++i) result.descriptions.push_back("rank " + std::to_string(i));
  result.cache_capacity = capacity;
  result.fusion = {1000, 100};
  return result;
}

Request tensor(const std::string& name, std::int64_t count = 4) {
  Request request;
  request.name = name;
  request.shape = {count};
  return request;
}

Request member(const std::string& name, const std::string& group, std::int32_t size) {
  Request request = tensor(name);
  request.group = group;
  request.group_size = size;
  return request;
}

// A decider and what its ranks would say to it.
struct Root {
  explicit Root(int ranks, std::size_t capacity = 100)
      : size(ranks), decider(settings(ranks, capacity)) {}

  void full(Rank rank, std::vector<Request> requests, double now = 0) {
    REQUIRE(decider.announce({rank, seen, {}, std::move(requests)}, at(now)).ok());
  }
  void cached(Rank rank, std::vector<CacheId> ids, double now = 0) {
    REQUIRE(decider.announce({rank, seen, std::move(ids), {}}, at(now)).ok());
  }
  void all(const Request& request) {
    for (Rank rank = 0; rank < size; ++rank) full(rank, {request});
  }
  Decision decide() {
    const Decision decision = decider.decide();
    CHECK(decision.sequence == ++last);
    seen = last;
    return decision;
  }
  // The id under which everybody remembers it now.
  CacheId learn(const std::string& name) {
    all(tensor(name));
    const Decision decision = decide();
    return std::get<Response>(decision.entries.at(0)).remember.value();
  }

  int size;
  Decider decider;
  std::uint64_t seen = 0;  // what announcements say
  std::uint64_t last = 0;
};

}  // namespace

TEST_CASE("a tensor is decided when the last rank has announced it") {
  Root root(3);
  root.full(2, {tensor("a"), tensor("b")});
  root.full(0, {tensor("b")});
  CHECK(!root.decider.has_ready());
  root.full(1, {tensor("b"), tensor("a")});
  REQUIRE(root.decider.has_ready());
  CHECK(root.decider.ready_bytes() == 16);
  root.full(0, {tensor("a")});
  const Decision decision = root.decide();
  REQUIRE(decision.entries.size() == 2);
  CHECK(decision.limits == FusionLimits{1000, 100});
  CHECK(std::get<Response>(decision.entries[0]) == Response{"b", 0, {}});
  CHECK(std::get<Response>(decision.entries[1]) == Response{"a", 1, {}});
  CHECK(!root.decider.has_ready());
  CHECK(root.decider.ready_bytes() == 0);
}

TEST_CASE("what is remembered is decided by number") {
  Root root(2);
  const CacheId a = root.learn("a");
  const CacheId b = root.learn("b");
  root.cached(0, {a, b});
  CHECK(!root.decider.has_ready());
  root.cached(1, {a, b});
  const Decision decision = root.decide();
  REQUIRE(decision.entries.size() == 1);
  CHECK(std::get<CachedRun>(decision.entries[0]) == CachedRun{a, b});
  CHECK(!decision.limits);
  root.decider.set_fusion({5, 5});
  root.cached(0, {a});
  root.cached(1, {a});
  CHECK(root.decide().limits == FusionLimits{5, 5});
}

TEST_CASE("a changed shape renews one entry") {
  Root root(2);
  const CacheId a = root.learn("a");
  const CacheId b = root.learn("b");
  root.all(tensor("a", 9));
  const Decision decision = root.decide();
  CHECK(std::get<Response>(decision.entries[0]) == Response{"a", a, {}});
  root.cached(0, {a, b});
  root.cached(1, {a, b});
  CHECK(std::get<CachedRun>(root.decide().entries[0]) == CachedRun{a, b});
  // It is remembered as it is now.
  root.cached(0, {a});
  root.full(1, {tensor("a", 4)});
  CHECK(std::get<Rejection>(root.decide().entries[0]).message ==
        "allreduce \"a\": rank 0 submitted float32 [9], rank 1 float32 [4]");
}

TEST_CASE("one rank may change what only it decides") {
  Root root(2);
  Request gather = tensor("g");
  gather.kind = CollectiveKind::kAllgather;
  root.all(gather);
  CHECK(std::get<Response>(root.decide().entries[0]) == Response{"g", 0, {4, 4}});
  Request more = gather;
  more.shape = {7};
  for (const bool cached_first : {true, false}) {
    if (cached_first) root.cached(0, {0});
    root.full(1, {more});
    if (!cached_first) root.cached(0, {0});
    CHECK(std::get<Response>(root.decide().entries[0]) == Response{"g", 0, {4, 7}});
  }
  root.cached(0, {0});
  root.cached(1, {0});
  CHECK(std::get<CachedRun>(root.decide().entries[0]) == CachedRun{0});
}

TEST_CASE("alltoall keeps what each rank sends to each") {
  Root root(2);
  Request exchange = tensor("x", 5);
  exchange.kind = CollectiveKind::kAlltoall;
  exchange.splits = {2, 3};
  root.full(0, {exchange});
  exchange.splits = {5, 0};
  root.full(1, {exchange});
  CHECK(std::get<Response>(root.decide().entries[0]) == Response{"x", 0, {2, 3, 5, 0}});
  exchange.splits = {1, 1};
  root.full(0, {exchange});
  root.cached(1, {0});
  CHECK(std::get<Response>(root.decide().entries[0]) == Response{"x", 0, {1, 1, 5, 0}});
}

TEST_CASE("unnamed tensors are not remembered and push nothing out") {
  Root root(2, 1);
  const CacheId a = root.learn("a");
  Request unnamed = tensor("allreduce.noname.0");
  unnamed.unnamed = true;
  root.all(unnamed);
  CHECK(!std::get<Response>(root.decide().entries[0]).remember);
  root.cached(0, {a});
  root.cached(1, {a});
  CHECK(std::get<CachedRun>(root.decide().entries[0]) == CachedRun{a});
}

TEST_CASE("a full cache gives up what was used longest ago") {
  Root root(2, 2);
  const CacheId a = root.learn("a");
  const CacheId b = root.learn("b");
  root.cached(0, {a});
  root.cached(1, {a});
  root.decide();
  CHECK(root.learn("c") == b);
  CHECK(root.learn("d") == a);
}

TEST_CASE("what is under way keeps its number") {
  Root root(2, 1);
  const CacheId a = root.learn("a");
  root.cached(0, {a});
  root.all(tensor("b"));
  CHECK(!std::get<Response>(root.decide().entries[0]).remember);
  // Ready and not yet decided, too.
  root.cached(1, {a});
  root.all(tensor("c"));
  const Decision decision = root.decide();
  REQUIRE(decision.entries.size() == 2);
  CHECK(std::get<CachedRun>(decision.entries[0]) == CachedRun{a});
  CHECK(!std::get<Response>(decision.entries[1]).remember);
  // And free again afterwards.
  CHECK(root.learn("d") == a);
}

TEST_CASE("a spelled-out change or a failure unpins the number") {
  Root root(2, 1);
  const CacheId a = root.learn("a");
  root.cached(0, {a});
  root.full(1, {tensor("a", 9)});
  root.decide();  // a mismatch
  CHECK(root.learn("b") == a);
  Root other(2, 1);
  other.learn("a");
  other.cached(0, {0});
  other.decider.check_stalls(at(1000));
  other.decide();
  CHECK(other.learn("b") == 0u);
}

TEST_CASE("a number means what it meant to the rank that says it") {
  Root root(2, 1);
  const CacheId id = root.learn("a");
  // Rank 0 has not seen the decision that gives the number to b.
  root.all(tensor("b"));
  const std::uint64_t before = root.seen;
  CHECK(std::get<Response>(root.decide().entries[0]) == Response{"b", id, {}});
  REQUIRE(root.decider.announce({0, before, {id}, {}}, at(0)).ok());
  root.full(1, {tensor("a")});
  CHECK(std::get<Response>(root.decide().entries[0]) == Response{"a", id, {}});
  root.cached(0, {id});
  root.cached(1, {id});
  CHECK(std::get<CachedRun>(root.decide().entries[0]) == CachedRun{id});
}

TEST_CASE("several reuses of one number are told apart") {
  Root fresh(3, 1);
  // Rank 2 lags: it announces by the meaning after decision 1, then after 2.
  fresh.all(tensor("a"));
  fresh.decide();
  const std::uint64_t after_a = fresh.seen;
  fresh.full(0, {tensor("b")});
  fresh.full(1, {tensor("b")});
  REQUIRE(fresh.decider.announce({2, after_a, {}, {tensor("b"), tensor("c")}}, at(0)).ok());
  fresh.decide();
  fresh.full(0, {tensor("c")});
  fresh.full(1, {tensor("c")});
  fresh.decide();
  REQUIRE(fresh.decider.announce({2, after_a, {0}, {}}, at(0)).ok());
  fresh.full(0, {tensor("a")});
  fresh.full(1, {tensor("a")});
  CHECK(std::get<Response>(fresh.decide().entries.at(0)).name == "a");
  REQUIRE(fresh.decider.announce({2, after_a + 1, {0}, {}}, at(0)).ok());
  fresh.full(0, {tensor("b")});
  fresh.full(1, {tensor("b")});
  CHECK(std::get<Response>(fresh.decide().entries.at(0)).name == "b");
}

TEST_CASE("without a cache everything is spelled out") {
  Root root(2, 0);
  root.all(tensor("a"));
  CHECK(std::get<Response>(root.decide().entries[0]) == Response{"a", {}, {}});
}

TEST_CASE("a mismatch fails the tensor on all ranks and nothing else") {
  Root root(4);
  for (Rank rank : {3, 0, 1}) root.full(rank, {tensor("x", 64), tensor("ok")});
  root.full(2, {tensor("x", 32), tensor("ok")});
  const Decision decision = root.decide();
  REQUIRE(decision.entries.size() == 2);
  CHECK(std::get<Rejection>(decision.entries[0]) ==
        Rejection{StatusCode::kMismatch,
                  "allreduce \"x\": ranks 0,1,3 submitted float32 [64], rank 2 float32 [32]",
                  {"x"},
                  {}});
  CHECK(std::get<Response>(decision.entries[1]).name == "ok");
  root.all(tensor("x", 32));
  CHECK(std::get<Response>(root.decide().entries[0]).name == "x");
}

TEST_CASE("a group is withheld until all its members are ready everywhere") {
  Root root(2);
  root.full(0, {member("g.0", "g", 2), member("g.1", "g", 2)});
  root.full(1, {member("g.1", "g", 2)});
  CHECK(!root.decider.has_ready());
  root.all(tensor("x"));
  CHECK(root.decide().entries.size() == 1);
  root.full(1, {member("g.0", "g", 2)});
  const Decision decision = root.decide();
  REQUIRE(decision.entries.size() == 2);
  CHECK(std::get<Response>(decision.entries[0]).name == "g.0");
  CHECK(std::get<Response>(decision.entries[1]).name == "g.1");
  // From memory, too.
  root.cached(1, {1, 2});
  root.cached(0, {1, 2});
  CHECK(std::get<CachedRun>(root.decide().entries[0]) == CachedRun{1, 2});
}

TEST_CASE("one bad member fails the group on all ranks") {
  Root root(2);
  root.full(0, {member("g.0", "g", 3), member("g.1", "g", 3), member("g.2", "g", 3)});
  Request bad = member("g.1", "g", 3);
  bad.dtype = DataType::kInt8;
  root.full(1, {member("g.0", "g", 3), bad, member("g.2", "g", 3)});
  const Decision decision = root.decide();
  std::vector<std::string> to_rank_0, to_rank_1;
  for (const DecisionEntry& entry : decision.entries) {
    const Rejection& rejection = std::get<Rejection>(entry);
    CHECK(rejection.message.find("allreduce \"g.1\"") == 0);
    const auto concerns = [&](Rank rank) {
      return rejection.ranks.empty() ||
             std::count(rejection.ranks.begin(), rejection.ranks.end(), rank) > 0;
    };
    for (const std::string& name : rejection.names) {
      if (concerns(0)) to_rank_0.push_back(name);
      if (concerns(1)) to_rank_1.push_back(name);
    }
  }
  std::sort(to_rank_0.begin(), to_rank_0.end());
  std::sort(to_rank_1.begin(), to_rank_1.end());
  CHECK(to_rank_0 == std::vector<std::string>{"g.0", "g.1", "g.2"});
  CHECK(to_rank_1 == to_rank_0);
  // The group's next attempt is a new one.
  for (Rank rank : {0, 1})
    root.full(rank, {member("g.0", "g", 3), member("g.1", "g", 3), member("g.2", "g", 3)});
  CHECK(root.decide().entries.size() == 3);
}

TEST_CASE("groups of different sizes or names fail at once") {
  for (const bool other_name : {false, true}) {
    Root root(2);
    root.full(0, {member("g.0", "g", 2), member("g.1", "g", 2)});
    root.full(1, {member("g.0", other_name ? "h" : "g", other_name ? 2 : 3)});
    const Decision decision = root.decide();
    std::size_t names = 0;
    for (const DecisionEntry& entry : decision.entries)
      names += std::get<Rejection>(entry).names.size();
    CHECK(names == 2);
    CHECK(std::get<Rejection>(decision.entries.back())
              .message.find(other_name ? "in group \"g\", rank 1" : "in a group of 2, rank 1") !=
          std::string::npos);
  }
}

TEST_CASE("a stalled tensor is warned about, then fails on who has it, then on who comes late") {
  Root root(3);
  root.full(0, {tensor("x")}, 10);
  root.full(2, {tensor("x")}, 11);
  CHECK(root.decider.next_check() == at(70));
  CHECK(root.decider.check_stalls(at(69)).empty());
  CHECK(root.decider.check_stalls(at(70)).size() == 1);
  CHECK(root.decider.check_stalls(at(71)).empty());
  CHECK(!root.decider.has_ready());
  CHECK(root.decider.check_stalls(at(610)).empty());
  const auto rejection = std::get<Rejection>(root.decide().entries.at(0));
  CHECK(rejection.code == StatusCode::kTimedOut);
  CHECK(rejection.message.find("allreduce \"x\": submitted by ranks 0,2, but not by rank 1") == 0);
  CHECK(rejection.ranks == std::vector<Rank>{0, 2});
  // The others try again before rank 1 has come at all.
  root.full(0, {tensor("x")}, 620);
  root.full(1, {tensor("x")}, 621);
  const auto late = std::get<Rejection>(root.decide().entries.at(0));
  CHECK(late.ranks == std::vector<Rank>{1});
  CHECK(late.message == rejection.message);
  root.full(1, {tensor("x")}, 622);
  root.full(2, {tensor("x")}, 623);
  CHECK(std::get<Response>(root.decide().entries.at(0)).name == "x");
}

TEST_CASE("a stalled member fails its group") {
  Root root(2);
  root.full(0, {member("g.0", "g", 2), member("g.1", "g", 2)});
  root.full(1, {member("g.0", "g", 2)});
  root.decider.check_stalls(at(601));
  std::size_t names = 0;
  for (const DecisionEntry& entry : root.decide().entries)
    names += std::get<Rejection>(entry).names.size();
  CHECK(names == 2);
  CHECK(root.decider.next_check() == TimePoint::max());
}

TEST_CASE("contradictions are faults of a coordinator") {
  Root root(2);
  root.full(0, {tensor("x")});
  CHECK(root.decider.announce({0, 0, {}, {tensor("x")}}, at(0)).code() == StatusCode::kInternal);
  CHECK(root.decider.announce({2, 0, {}, {}}, at(0)).code() == StatusCode::kInternal);
  CHECK(root.decider.announce({-1, 0, {}, {}}, at(0)).code() == StatusCode::kInternal);
  CHECK(root.decider.announce({1, 0, {3}, {}}, at(0)).code() == StatusCode::kInternal);
  CHECK(root.decider.announce({1, 9, {}, {}}, at(0)).code() == StatusCode::kInternal);
  Request nonsense = tensor("y");
  nonsense.shape = {-4};
  CHECK(root.decider.announce({1, 0, {}, {nonsense}}, at(0)).code() == StatusCode::kInternal);
}
