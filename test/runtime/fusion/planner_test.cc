#include "runtime/fusion/planner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>

using namespace allring;

namespace {

using Plan = std::vector<PlanBatch>;
constexpr FusionLimits kLimits = {1000, 100};

PlanItem item(std::int64_t bytes, DataType dtype = DataType::kFloat32,
              std::string_view group = {}) {
  PlanItem result;
  result.bytes = bytes;
  result.dtype = dtype;
  result.group = group;
  return result;
}

PlanItem other_kind(CollectiveKind kind) {
  PlanItem result;
  result.kind = kind;
  return result;
}

}  // namespace

TEST_CASE("small allreduces share a batch up to the threshold") {
  CHECK(plan({}, kLimits, true).empty());
  const std::vector<PlanItem> items(12, item(100));
  const Plan batches = plan(items, kLimits, true);
  CHECK(batches == Plan{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {10, 11}});
}

TEST_CASE("large ones stay alone within a host, and are packed between hosts") {
  const std::vector<PlanItem> items = {item(100), item(101), item(50), item(2000), item(50)};
  CHECK(plan(items, kLimits, true) == Plan{{0, 2, 4}, {1}, {3}});
  CHECK(plan(items, kLimits, false) == Plan{{0, 1, 2, 4}, {3}});
}

TEST_CASE("only equal dtype, op and scales are packed together") {
  PlanItem average = item(10);
  average.op = ReduceOp::kAverage;
  PlanItem pre = item(10);
  pre.prescale = 2;
  PlanItem post = item(10);
  post.postscale = 2;
  const std::vector<PlanItem> items = {
      item(10), item(10, DataType::kInt32), average, pre, post, post, pre,
      average,  item(10, DataType::kInt32), item(10)};
  CHECK(plan(items, kLimits, true) == Plan{{0, 9}, {1, 8}, {2, 7}, {3, 6}, {4, 5}});
}

TEST_CASE("other kinds stay alone") {
  const std::vector<PlanItem> items = {item(10),
                                       other_kind(CollectiveKind::kAllgather),
                                       other_kind(CollectiveKind::kAllgather),
                                       other_kind(CollectiveKind::kBroadcast),
                                       other_kind(CollectiveKind::kBarrier),
                                       item(10)};
  CHECK(plan(items, kLimits, true) == Plan{{0, 5}, {1}, {2}, {3}, {4}});
}

TEST_CASE("no threshold, no fusion") {
  const std::vector<PlanItem> items(3, item(0));
  CHECK(plan(items, {0, 100}, true) == Plan{{0}, {1}, {2}});
  CHECK(plan(items, {0, 100}, false) == Plan{{0}, {1}, {2}});
  CHECK(plan(items, {1000, 0}, true) == Plan{{0, 1, 2}});  // nothing to copy
}

TEST_CASE("a group stays together if it fits") {
  std::vector<PlanItem> items(9, item(100));
  for (int i = 0; i < 3; ++i) items.push_back(item(100, DataType::kFloat32, "g"));
  items.push_back(item(50));
  CHECK(plan(items, kLimits, true) == Plan{{0, 1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11, 12}});
  // One that does not fit any batch is split like the rest.
  std::vector<PlanItem> large;
  for (int i = 0; i < 12; ++i) large.push_back(item(100, DataType::kFloat32, "g"));
  CHECK(plan(large, kLimits, true).size() == 2);
  // Two groups in a row may share a batch.
  const std::vector<PlanItem> two = {item(10, DataType::kFloat32, "g"),
                                     item(10, DataType::kFloat32, "g"),
                                     item(10, DataType::kFloat32, "h")};
  CHECK(plan(two, kLimits, true) == Plan{{0, 1, 2}});
}

TEST_CASE("every tensor is in one batch, and batches keep the limits") {
  const unsigned seed = 31;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::vector<PlanItem> items;
    while (items.size() < 60) {
      const std::string_view group = random() % 5 == 0 ? "g" : "";
      const int members = group.empty() ? 1 : 1 + random() % 6;
      for (int i = 0; i < members; ++i) {
        items.push_back(
            item(random() % 150, random() % 3 ? DataType::kFloat32 : DataType::kInt8, group));
        if (random() % 9 == 0) items.back().kind = CollectiveKind::kBroadcast;
      }
      items.push_back(item(1));  // keeps groups of one name apart
    }
    const bool single_host = random() % 2;
    const Plan batches = plan(items, kLimits, single_host);
    std::set<std::size_t> seen;
    std::size_t first = 0;
    for (const PlanBatch& batch : batches) {
      REQUIRE(!batch.empty());
      CHECK(std::is_sorted(batch.begin(), batch.end()));
      CHECK(batch.front() >= first);
      first = batch.front();
      std::int64_t bytes = 0;
      for (std::size_t i : batch) {
        CHECK(seen.insert(i).second);
        bytes += items[i].bytes;
        CHECK((batch.size() == 1 || (items[i].dtype == items[batch[0]].dtype &&
                                     items[i].kind == CollectiveKind::kAllreduce)));
      }
      CHECK((batch.size() == 1 || bytes <= kLimits.threshold_bytes));
    }
    CHECK(seen.size() == items.size());
    CHECK(plan(items, kLimits, single_host) == batches);
  }
}
