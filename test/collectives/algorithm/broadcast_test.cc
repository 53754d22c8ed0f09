// Every broadcast row x column x dtype x 1..8 ranks x root x awkward counts.
#include <catch2/catch.hpp>

#include "test/collectives/algorithm/matrix.h"

namespace allring::test {
namespace {

struct Case {
  const Algorithm* row;
  DataType dtype;
  std::size_t count;
  Rank root;
};

void check_cluster(const Cluster& cluster) {
  const int size = static_cast<int>(cluster.host_of.size());
  const auto rows = rows_of(CollectiveKind::kBroadcast, cluster);
  REQUIRE(!rows.empty());
  std::vector<Case> cases;
  for (DataType dtype : all_data_types()) {
    for (std::size_t count : awkward_counts(size)) {
      for (Rank root = 0; root < size; ++root) {
        for (const Algorithm* row : rows) cases.push_back({row, dtype, count, root});
      }
    }
  }
  const auto problems = run_cases(
      cluster, cases.size(),
      [&](Group& group, std::size_t index) -> Result<std::uint64_t> {
        const Case& one = cases[index];
        CollectiveArgs args;
        args.kind = CollectiveKind::kBroadcast;
        args.reduction.dtype = one.dtype;
        args.count = one.count;
        args.root = one.root;
        if (!one.row->supports(args, group)) return Status::internal("not supported");
        const std::byte* content = elements(one.dtype, group.rank()).data();
        Buffer buffer(content, args.bytes(), index % 3 == 0 ? element_bytes(one.dtype) : 0);
        args.output = buffer.data();
        ALLRING_RETURN_IF_ERROR(one.row->run(args, group, kNoDeadline));
        const std::byte* expected = elements(one.dtype, one.root).data();
        if (!std::equal(expected, expected + args.bytes(), buffer.data()))
          return Status::internal("wrong bytes");
        return std::uint64_t{0};
      },
      [&](std::size_t index) {
        const Case& one = cases[index];
        return std::string(one.row->name) + " broadcast of " + std::to_string(one.count) + " " +
               std::string(data_type_name(one.dtype)) + " from rank " + std::to_string(one.root);
      });
  CHECK(problems == "");
}

TEST_CASE("broadcast: every row, column, dtype, size, root and count") {
  for (const Column& column : kColumns) {
    for (const Cluster& cluster : clusters_of(column)) {
      INFO(column.name << ", " << cluster.host_of.size() << " ranks");
      check_cluster(cluster);
    }
  }
}

}  // namespace
}  // namespace allring::test
