#include "collectives/algorithm/catalog.h"

#include <catch2/catch.hpp>
#include <set>

#include "collectives/transport/heap_host_memory.h"
#include "collectives/transport/inproc.h"
#include "test/harness/run_ranks.h"

namespace allring::test {
namespace {

constexpr CollectiveKind kKinds[] = {
    CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter, CollectiveKind::kAllgather,
    CollectiveKind::kBroadcast, CollectiveKind::kAlltoall,      CollectiveKind::kBarrier,
};

std::string chosen(const CollectiveArgs& args, Group& group, std::string_view forced = "") {
  return std::string(choose(args, group, ForcedAlgorithms::parse(forced).value()).name);
}

CollectiveArgs allreduce_of(DataType dtype, std::size_t count) {
  CollectiveArgs args;
  args.kind = CollectiveKind::kAllreduce;
  args.reduction.dtype = dtype;
  args.count = count;
  return args;
}

/// Rank 0's group of a cluster that runs nothing.
class IdleGroup {
 public:
  IdleGroup(const std::vector<int>& ranks_per_host, bool host_memory)
      : topology_(Cluster::hosts(ranks_per_host).host_of), network_(topology_.size()) {
    const int local_size = topology_.local_size(0);
    if (host_memory) {
      memory_ = make_heap_host_memory(
          {.ranks = local_size,
           .buffers = 3,
           .slot_bytes = static_cast<std::size_t>(local_size > 8 ? 4 : 256) * 1024},
          {});
    }
    HostMemory* own = host_memory ? memory_[0].get() : nullptr;
    group_ = std::make_unique<Group>(topology_, network_.transport(0),
                                     topology_.hosts() == 1 ? own : nullptr);
    build_hierarchy(*group_, own);
  }
  Group& operator*() { return *group_; }

 private:
  Topology topology_;
  InprocNetwork network_;
  std::vector<std::unique_ptr<HostMemory>> memory_;
  std::unique_ptr<Group> group_;
};

TEST_CASE("names are unique within a kind") {
  for (CollectiveKind kind : kKinds) {
    std::set<std::string_view> names;
    for (const Algorithm& row : algorithms(kind)) {
      CHECK(row.kind == kind);
      CHECK(names.insert(row.name).second);
    }
    CHECK(names.contains("self"));
  }
}

TEST_CASE("one name forces every kind that has such a row") {
  const auto forced = ForcedAlgorithms::parse("ring").value();
  CHECK(forced.name(CollectiveKind::kAllreduce) == "ring");
  CHECK(forced.name(CollectiveKind::kReduceScatter) == "ring");
  CHECK(forced.name(CollectiveKind::kAllgather) == "ring");
  CHECK(forced.name(CollectiveKind::kBroadcast).empty());
}

TEST_CASE("kinds are forced one by one, and the last word on a kind counts") {
  const auto forced =
      ForcedAlgorithms::parse(" ring, allreduce = push ,barrier=dissemination").value();
  CHECK(forced.name(CollectiveKind::kAllreduce) == "push");
  CHECK(forced.name(CollectiveKind::kAllgather) == "ring");
  CHECK(forced.name(CollectiveKind::kBarrier) == "dissemination");
  CHECK(ForcedAlgorithms::parse("").value().name(CollectiveKind::kAllreduce).empty());
}

TEST_CASE("an unknown name or kind is an error that lists what there is") {
  for (const char* text : {"rong", "allreduce=binomial", "reduce=ring", "ring,,push", "=ring"}) {
    INFO(text);
    const auto parsed = ForcedAlgorithms::parse(text);
    REQUIRE(!parsed.ok());
    CHECK(parsed.status().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(parsed.status().message(),
               Catch::Contains("ALGORITHM=\"" + std::string(text) + "\"") &&
                   Catch::Contains("allreduce: self, line, oneshot, direct, push, ring") &&
                   Catch::Contains("barrier: self, flags, dissemination"));
  }
}

TEST_CASE("within a host the size decides among the shared-memory rows") {
  IdleGroup group({4}, true);
  CHECK(chosen(allreduce_of(DataType::kFloat32, 1), *group) == "line");
  CHECK(chosen(allreduce_of(DataType::kFloat32, 14), *group) == "line");
  CHECK(chosen(allreduce_of(DataType::kFloat32, 15), *group) == "oneshot");
  CHECK(chosen(allreduce_of(DataType::kFloat32, 256), *group) == "oneshot");
  CHECK(chosen(allreduce_of(DataType::kFloat32, 16384), *group) == "push");
  CHECK(chosen(allreduce_of(DataType::kFloat16, 1 << 26), *group) == "push");
}

TEST_CASE("between hosts latency decides at first, then bandwidth") {
  IdleGroup flat({1, 1, 1, 1, 1, 1, 1, 1}, false);
  CHECK(chosen(allreduce_of(DataType::kFloat32, 1 << 26), *flat) == "ring");
  CHECK(chosen(allreduce_of(DataType::kFloat16, 1 << 26), *flat) == "pairwise");
  IdleGroup deep({4, 4}, true);
  CHECK(chosen(allreduce_of(DataType::kFloat32, 1 << 26), *deep) == "hierarchical");
  CHECK(chosen(allreduce_of(DataType::kBfloat16, 1 << 26), *deep) == "hierarchical");
  IdleGroup uneven({3, 1}, false);
  CHECK(chosen(allreduce_of(DataType::kFloat32, 1 << 26), *uneven) == "ring");
}

TEST_CASE("16-bit sums over more than two ranks never run where each hop would round") {
  IdleGroup group({3, 3}, true);
  for (const Algorithm& row : algorithms(CollectiveKind::kAllreduce)) {
    INFO(row.name);
    const bool once = row.name == "pairwise" || row.name == "hierarchical";
    CHECK(row.supports(allreduce_of(DataType::kFloat16, 1000), *group) == once);
    CollectiveArgs max = allreduce_of(DataType::kFloat16, 1000);
    max.reduction.op = ReduceOp::kMax;
    const bool messages = once || row.name == "ring" || row.name == "halving_doubling";
    CHECK(row.supports(max, *group) == messages);
  }
}

TEST_CASE("a forced row runs where it can, and another one where it cannot") {
  IdleGroup group({4}, false);
  CHECK(chosen(allreduce_of(DataType::kFloat32, 1), *group, "ring") == "ring");
  CHECK(chosen(allreduce_of(DataType::kFloat32, 1), *group, "halving_doubling") ==
        "halving_doubling");
  CHECK(chosen(allreduce_of(DataType::kFloat16, 1), *group, "ring") == "pairwise");
  CHECK(chosen(allreduce_of(DataType::kFloat32, 1), *group, "push") != "push");
}

TEST_CASE("what a row cannot run is said in words") {
  IdleGroup group({4}, true);
  const auto why = [&](std::string_view name, const CollectiveArgs& args, bool deterministic) {
    ForcedAlgorithms forced;
    forced.set_deterministic(deterministic);
    for (const Algorithm& row : algorithms(args.kind))
      if (row.name == name) return obstacle(row, args, *group, forced);
    return std::string("no such row");
  };
  const CollectiveArgs floats = allreduce_of(DataType::kFloat32, 1000);
  CHECK(why("push", floats, true) == "");
  CHECK(why("ring", floats, false) == "");
  CHECK(why("ring", floats, true).find("DETERMINISTIC") != std::string::npos);
  CHECK(why("ring", allreduce_of(DataType::kFloat16, 9), false).find("16-bit") !=
        std::string::npos);
  CHECK(why("line", floats, false) == "takes shorter ones only");
  CHECK(why("self", floats, false) == "is for one rank");
  CHECK(why("hierarchical", floats, false).find("4 ranks on 1 hosts") != std::string::npos);
}

TEST_CASE("the cluster's parameters decide") {
  IdleGroup group({4, 4}, true);
  const CollectiveArgs args = allreduce_of(DataType::kFloat32, 1 << 24);
  REQUIRE(chosen(args, *group) == "hierarchical");
  CostParameters costs;
  costs.host_memory.us_per_byte *= 1000;
  (*group).set_costs(costs);
  CHECK(chosen(args, *group) == "ring");
  costs.between_hosts.alpha_us = 1e9;
  (*group).set_costs(costs);
  CHECK(chosen(args, *group) != "ring");
}

TEST_CASE("there is a row for everything, and one rank is served by itself") {
  for (const std::vector<int>& hosts :
       {std::vector<int>{1}, {2}, {5}, {300}, {1, 1}, {2, 3}, {2, 2, 2}}) {
    for (bool host_memory : {false, true}) {
      IdleGroup group(hosts, host_memory);
      const std::vector<std::size_t> counts((*group).size(), 3);
      for (CollectiveKind kind : kKinds) {
        for (int dtype = 0; dtype < kDataTypeCount; ++dtype) {
          CollectiveArgs args = allreduce_of(static_cast<DataType>(dtype), 3 * counts.size());
          args.kind = kind;
          args.counts = args.recv_counts = counts;
          CHECK((chosen(args, *group) == "self") == ((*group).size() == 1));
          CHECK((chosen(args, *group, "ring") == "self") == ((*group).size() == 1));
        }
      }
    }
  }
}

TEST_CASE("all ranks choose the same") {
  for (const Cluster& cluster :
       {Cluster::one_host(3, Medium::kInproc, true), Cluster::hosts({2, 2}, Medium::kInproc, true),
        Cluster::hosts({1, 2})}) {
    std::vector<std::string> names(cluster.host_of.size());
    const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
      const ForcedAlgorithms none;
      for (CollectiveKind kind : kKinds) {
        for (std::size_t count : {0, 1, 1000, 100000, 10000000}) {
          // Per-rank values, as alltoall has them.
          const std::vector<std::size_t> own(
              group.size(), kind == CollectiveKind::kAlltoall ? group.rank() * count : count);
          CollectiveArgs args = allreduce_of(DataType::kFloat32, own[0] * group.size());
          args.kind = kind;
          args.counts = args.recv_counts = own;
          names[group.rank()] += std::string(choose(args, group, none).name) + " ";
        }
      }
      return {};
    });
    CHECK(failures(statuses) == "");
    for (const std::string& name : names) CHECK(name == names[0]);
  }
}

}  // namespace
}  // namespace allring::test
