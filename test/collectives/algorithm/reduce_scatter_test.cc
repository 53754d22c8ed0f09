// Every reduce_scatter row x column x dtype x op x 1..8 ranks x awkward counts, split evenly and
// unevenly, against the reference. Column by tag, so that each can be a test target of its own. The
// longest vectors are split unevenly for sums only, to stay within seconds.
#include <catch2/catch.hpp>
#include <numeric>

#include "test/collectives/algorithm/matrix.h"
#include "test/harness/reference.h"

namespace allring::test {
namespace {

struct Case {
  const Algorithm* row;
  DataType dtype;
  ReduceOp op;
  std::vector<std::size_t> counts;
  std::size_t expected;
  bool in_place;
};

std::string describe(const Case& one) {
  std::string text =
      std::string(one.row->name) + " reduce_scatter of " + std::string(data_type_name(one.dtype)) +
      ", " + std::string(reduce_op_name(one.op)) + (one.in_place ? ", in place" : "") + ", counts";
  for (std::size_t count : one.counts) text += " " + std::to_string(count);
  return text;
}

void check_cluster(const Cluster& cluster) {
  const int size = static_cast<int>(cluster.host_of.size());
  const auto rows = rows_of(CollectiveKind::kReduceScatter, cluster);
  REQUIRE(!rows.empty());
  std::vector<Case> cases;
  std::vector<Expected> expected;
  for (DataType dtype : all_data_types()) {
    std::vector<std::vector<std::byte>> inputs;
    for (Rank rank = 0; rank < size; ++rank) inputs.push_back(elements(dtype, rank));
    for (ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      if (dtype == DataType::kBool && op == ReduceOp::kAverage) continue;
      expected.emplace_back(inputs, dtype, op);
      for (std::size_t count : awkward_counts(size)) {
        for (const auto& counts : awkward_splits(count, size)) {
          if (count == kMostElements && counts[0] != (count + size - 1) / size &&
              op != ReduceOp::kSum)
            continue;
          for (const Algorithm* row : rows)
            cases.push_back({row, dtype, op, counts, expected.size() - 1, cases.size() % 2 == 0});
        }
      }
    }
  }
  std::size_t ran = 0;
  const auto problems = run_cases(
      cluster, cases.size(),
      [&](Group& group, std::size_t index) -> Result<std::uint64_t> {
        const Case& one = cases[index];
        const Rank rank = group.rank();
        CollectiveArgs args;
        args.kind = CollectiveKind::kReduceScatter;
        args.reduction = Reduction::resolve(one.dtype, one.op, size, 1.0).value();
        args.counts = one.counts;
        args.count = std::accumulate(one.counts.begin(), one.counts.end(), std::size_t{0});
        if (!one.row->supports(args, group)) return std::uint64_t{0};
        if (rank == 0) ++ran;
        const std::size_t element = element_bytes(one.dtype);
        const std::size_t begin =
            std::accumulate(one.counts.begin(), one.counts.begin() + rank, std::size_t{0});
        const std::byte* content = elements(one.dtype, rank).data();
        Buffer input(content, args.bytes(), index % 3 == 0 ? element : 0);
        Buffer output(one.counts[rank] * element, 0);
        args.input = input.data();
        args.output = one.in_place ? input.data() + begin * element : output.data();
        ALLRING_RETURN_IF_ERROR(one.row->run(args, group, kNoDeadline));
        const std::size_t untouched = one.in_place ? begin * element : args.bytes();
        if (!std::equal(content, content + untouched, input.data()))
          return Status::internal("the input has changed");
        const std::string problem = expected[one.expected].compare(
            static_cast<const std::byte*>(args.output), begin, one.counts[rank]);
        if (!problem.empty()) return Status::internal(problem);
        return std::uint64_t{0};
      },
      [&](std::size_t index) { return describe(cases[index]); });
  CHECK(problems == "");
  CHECK(ran > cases.size() / 2);
}

void check_column(std::string_view name) {
  for (const Column& column : kColumns) {
    if (column.name != name) continue;
    for (const Cluster& cluster : clusters_of(column)) {
      INFO(name << ", " << cluster.host_of.size() << " ranks");
      check_cluster(cluster);
    }
  }
}

TEST_CASE("reduce_scatter over an in-process network", "[inproc]") { check_column("inproc"); }
TEST_CASE("reduce_scatter over a network that buffers nothing", "[rendezvous]") {
  check_column("rendezvous");
}
TEST_CASE("reduce_scatter over rings in shared memory", "[shm]") { check_column("shm"); }
TEST_CASE("reduce_scatter over unix sockets", "[unix]") { check_column("unix"); }
TEST_CASE("reduce_scatter over TCP", "[tcp]") { check_column("tcp"); }
TEST_CASE("reduce_scatter through shared memory", "[host_memory]") { check_column("host_memory"); }

}  // namespace
}  // namespace allring::test
