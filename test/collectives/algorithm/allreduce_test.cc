// Every allreduce row x column x dtype x op x 1..8 ranks x awkward counts, against the reference.
// Column by tag, so that each can be a test target of its own.
#include <algorithm>
#include <catch2/catch.hpp>

#include "test/collectives/algorithm/matrix.h"
#include "test/harness/reference.h"

namespace allring::test {
namespace {

struct Case {
  const Algorithm* row;
  DataType dtype;
  ReduceOp op;
  std::size_t count;
  bool in_place;
};

std::string describe(const Case& one, int size) {
  return std::string(one.row->name) + " allreduce of " + std::to_string(one.count) + " " +
         std::string(data_type_name(one.dtype)) + ", " + std::string(reduce_op_name(one.op)) +
         (one.in_place ? ", in place, " : ", ") + std::to_string(size) + " ranks";
}

CollectiveArgs args_of(const Case& one, int size) {
  CollectiveArgs args;
  args.kind = CollectiveKind::kAllreduce;
  args.reduction = Reduction::resolve(one.dtype, one.op, size, 1.0).value();
  args.count = one.count;
  return args;
}

void check_cluster(const Cluster& cluster) {
  const int size = static_cast<int>(cluster.host_of.size());
  const auto rows = rows_of(CollectiveKind::kAllreduce, cluster);
  REQUIRE(!rows.empty());
  std::vector<Case> cases;
  std::vector<Expected> expected;
  std::vector<std::size_t> expected_of_case;
  for (DataType dtype : all_data_types()) {
    std::vector<std::vector<std::byte>> inputs;
    for (Rank rank = 0; rank < size; ++rank) inputs.push_back(elements(dtype, rank));
    for (ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      if (dtype == DataType::kBool && op == ReduceOp::kAverage) continue;
      expected.emplace_back(inputs, dtype, op);
      for (std::size_t count : awkward_counts(size)) {
        for (const Algorithm* row : rows) {
          cases.push_back({row, dtype, op, count, cases.size() % 2 == 0});
          expected_of_case.push_back(expected.size() - 1);
        }
      }
    }
  }
  std::vector<std::size_t> ran(rows.size());
  const auto problems = run_cases(
      cluster, cases.size(),
      [&](Group& group, std::size_t index) -> Result<std::uint64_t> {
        const Case& one = cases[index];
        CollectiveArgs args = args_of(one, size);
        if (!one.row->supports(args, group)) return std::uint64_t{0};
        if (group.rank() == 0) ++ran[std::find(rows.begin(), rows.end(), one.row) - rows.begin()];
        const std::size_t element = element_bytes(one.dtype);
        const std::size_t misalignment = index % 3 == 0 ? element : 0;
        const std::byte* content = elements(one.dtype, group.rank()).data();
        Buffer input(content, args.bytes(), misalignment);
        Buffer output(args.bytes(), 0);
        args.input = input.data();
        args.output = one.in_place ? input.data() : output.data();
        ALLRING_RETURN_IF_ERROR(one.row->run(args, group, kNoDeadline));
        if (!one.in_place && !std::equal(content, content + args.bytes(), input.data()))
          return Status::internal("the input has changed");
        if (group.rank() == 0) {  // the others have the same bits
          const std::string problem = expected[expected_of_case[index]].compare(
              static_cast<const std::byte*>(args.output), 0, one.count);
          if (!problem.empty()) return Status::internal(problem);
        }
        return (one.in_place ? input : output).hash();
      },
      [&](std::size_t index) { return describe(cases[index], size); });
  CHECK(problems == "");
  for (std::size_t row = 0; row < rows.size(); ++row) {
    INFO(rows[row]->name);
    CHECK(ran[row] > 0);
  }
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

TEST_CASE("allreduce over an in-process network", "[inproc]") { check_column("inproc"); }
TEST_CASE("allreduce over a network that buffers nothing", "[rendezvous]") {
  check_column("rendezvous");
}
TEST_CASE("allreduce over rings in shared memory", "[shm]") { check_column("shm"); }
TEST_CASE("allreduce over unix sockets", "[unix]") { check_column("unix"); }
TEST_CASE("allreduce over TCP", "[tcp]") { check_column("tcp"); }
TEST_CASE("allreduce through shared memory", "[host_memory]") { check_column("host_memory"); }

// Between hosts TCP, and within each what processes share: segments passed by descriptor.
TEST_CASE("allreduce over a mesh of hosts", "[mesh_hosts]") {
  const auto hosts =
      GENERATE(std::vector<int>{5}, std::vector<int>{2, 2}, std::vector<int>{2, 2, 2});
  const bool host_memory = GENERATE(true, false);
  check_cluster(Cluster::hosts(hosts, Medium::kShm, host_memory));
}

TEST_CASE("allreduce over several hosts", "[hosts]") {
  const auto hosts = GENERATE(std::vector<int>{2, 2}, std::vector<int>{3, 3},
                              std::vector<int>{2, 2, 2}, std::vector<int>{4, 4});
  const bool host_memory = GENERATE(true, false);
  check_cluster(Cluster::hosts(hosts, Medium::kInprocRendezvous, host_memory));
}

TEST_CASE("allreduce over hosts of unequal size", "[hosts]") {
  check_cluster(Cluster::hosts({1, 3, 2}, Medium::kInprocRendezvous, false));
}

}  // namespace
}  // namespace allring::test
