#include "runtime/negotiation/consistency.h"

#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

#include "runtime/negotiation/rank_set.h"

using namespace allring;

namespace {

std::vector<Rank> ranks_up_to(int size) {
  std::vector<Rank> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

Request request_of(CollectiveKind kind) {
  Request request;
  request.kind = kind;
  request.name = "layer1.weight";
  request.shape = {64, 64};
  return request;
}

// Two requests that differ in one thing.
bool agree_after(CollectiveKind kind, const std::function<void(Request&)>& change) {
  const Request one = request_of(kind);
  Request other = one;
  change(other);
  CHECK(agree(one, other) == agree(other, one));
  return agree(one, other);
}

std::string text(const Request& first, const std::function<void(Request&)>& change) {
  Request other = first;
  change(other);
  const std::vector<Faction> factions = {{first, {0, 1, 3}}, {other, {2}}};
  return mismatch_text(factions, ranks_up_to(4));
}

using Kind = CollectiveKind;

}  // namespace

TEST_CASE("lists of ranks") {
  const std::vector<Rank> members = ranks_up_to(100);
  const auto list = [&](std::vector<Rank> ranks) { return rank_list_text(ranks, members); };
  CHECK(list({2}) == "rank 2");
  CHECK(list({0, 1, 3}) == "ranks 0,1,3");
  CHECK(list({0, 1, 2, 3, 7}) == "ranks 0-3,7");
  CHECK(list({0, 1, 2}) == "ranks 0,1,2");
  CHECK(list({5, 10, 11, 12, 13, 14}) == "ranks 5,10-14");
  const std::vector<Rank> some = {4, 5, 6, 7, 20};
  const std::vector<Rank> all = {0, 1, 2, 3, 4};
  CHECK(rank_list_text(all, some) == "ranks 4-7,20");
}

TEST_CASE("sets of ranks") {
  RankSet set(70);
  CHECK(set.insert(69));
  CHECK(!set.insert(69));
  CHECK(set.insert(0));
  CHECK(set.contains(69));
  CHECK(!set.contains(70));
  CHECK(!set.contains(-1));
  CHECK(set.ranks() == std::vector<Rank>{0, 69});
  CHECK(set.missing().size() == 68);
  CHECK(set.erase(0));
  CHECK(!set.erase(0));
  CHECK(set.count() == 1);
  for (Rank rank = 0; rank < 70; ++rank) set.insert(rank);
  CHECK(set.full());
}

TEST_CASE("what must agree") {
  for (int kind = 0; kind < 6; ++kind) {
    const Kind k = static_cast<Kind>(kind);
    CHECK(agree_after(k, [](Request&) {}));
    CHECK(!agree_after(
        k, [&](Request& r) { r.kind = k == Kind::kBarrier ? Kind::kAllreduce : Kind::kBarrier; }));
    CHECK(!agree_after(k, [](Request& r) { r.group = "g"; }));
    CHECK(!agree_after(k, [](Request& r) { r.group_size = 2; }));
    if (k == Kind::kBarrier) continue;
    CHECK(!agree_after(k, [](Request& r) { r.dtype = DataType::kInt8; }));
    CHECK(!agree_after(k, [](Request& r) { r.device = 0; }));
    CHECK(!agree_after(k, [](Request& r) { r.shape = {64}; }));
    CHECK(!agree_after(k, [](Request& r) { r.shape = {64, 32}; }));
    const bool reduces = k == Kind::kAllreduce || k == Kind::kReduceScatter;
    CHECK(agree_after(k, [](Request& r) { r.op = ReduceOp::kMax; }) == !reduces);
    CHECK(agree_after(k, [](Request& r) { r.prescale = 2; }) == !reduces);
    CHECK(agree_after(k, [](Request& r) { r.postscale = 2; }) == !reduces);
    CHECK(agree_after(k, [](Request& r) { r.root = 1; }) == (k != Kind::kBroadcast));
    const bool rows_differ = k == Kind::kAllgather || k == Kind::kAlltoall;
    CHECK(agree_after(k, [](Request& r) { r.shape = {7, 64}; }) == rows_differ);
  }
  Request one = request_of(Kind::kAllreduce);
  one.device = 0;
  Request other = one;
  other.device = 3;
  CHECK(agree(one, other));
}

TEST_CASE("the error names each group of ranks once with what differs") {
  const Request allreduce = request_of(Kind::kAllreduce);
  CHECK(text(allreduce,
             [](Request& r) {
               r.shape = {64, 32};
             }) ==
        "allreduce \"layer1.weight\": ranks 0,1,3 submitted float32 [64,64], rank 2 float32 "
        "[64,32]");
  CHECK(text(allreduce, [](Request& r) { r.dtype = DataType::kBfloat16; }) ==
        "allreduce \"layer1.weight\": ranks 0,1,3 submitted float32 [64,64], rank 2 bfloat16 "
        "[64,64]");
  CHECK(text(allreduce, [](Request& r) { r.op = ReduceOp::kAverage; }) ==
        "allreduce \"layer1.weight\": ranks 0,1,3 submitted float32 [64,64] sum, rank 2 float32 "
        "[64,64] average");
  CHECK(text(allreduce, [](Request& r) { r.prescale = 0.5; }) ==
        "allreduce \"layer1.weight\": ranks 0,1,3 submitted float32 [64,64] prescale 1, rank 2 "
        "float32 [64,64] prescale 0.5");
  CHECK(text(allreduce, [](Request& r) { r.postscale = 2; }) ==
        "allreduce \"layer1.weight\": ranks 0,1,3 submitted float32 [64,64] postscale 1, rank 2 "
        "float32 [64,64] postscale 2");
  CHECK(text(allreduce, [](Request& r) { r.kind = Kind::kBroadcast; }) ==
        "tensor \"layer1.weight\": ranks 0,1,3 submitted allreduce float32 [64,64], rank 2 "
        "broadcast float32 [64,64]");
  CHECK(text(allreduce, [](Request& r) { r.device = 1; }) ==
        "allreduce \"layer1.weight\": ranks 0,1,3 submitted float32 [64,64] in host memory, rank "
        "2 float32 [64,64] on device 1");
  CHECK(text(allreduce,
             [](Request& r) {
               r.group = "g";
               r.group_size = 2;
             }) ==
        "allreduce \"layer1.weight\": ranks 0,1,3 submitted float32 [64,64] in no group, "
        "rank 2 float32 [64,64] in group \"g\"");
  CHECK(text(request_of(Kind::kBroadcast), [](Request& r) { r.root = 3; }) ==
        "broadcast \"layer1.weight\": ranks 0,1,3 submitted float32 [64,64] root 0, rank 2 "
        "float32 [64,64] root 3");
  CHECK(text(request_of(Kind::kAllgather),
             [](Request& r) {
               r.shape = {1, 2};
             }) ==
        "allgather \"layer1.weight\": ranks 0,1,3 submitted float32 [*,64], rank 2 float32 [*,2]");
  CHECK(text(request_of(Kind::kAllgather), [](Request& r) { r.shape = {1}; }) ==
        "allgather \"layer1.weight\": ranks 0,1,3 submitted float32 [*,64], rank 2 float32 [*]");
}

TEST_CASE("ranks are named as in the job") {
  Request other = request_of(Kind::kBroadcast);
  other.root = 1;
  const std::vector<Faction> factions = {{request_of(Kind::kBroadcast), {0}}, {other, {1, 2}}};
  const std::vector<Rank> members = {10, 12, 14};
  CHECK(mismatch_text(factions, members) ==
        "broadcast \"layer1.weight\": rank 10 submitted float32 [64,64] root 10, ranks 12,14 "
        "float32 [64,64] root 12");
}
