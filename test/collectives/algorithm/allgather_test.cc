// Every allgather row x column x dtype x 1..8 ranks x awkward counts, split evenly and unevenly.
#include <catch2/catch.hpp>
#include <numeric>

#include "test/collectives/algorithm/matrix.h"

namespace allring::test {
namespace {

struct Case {
  const Algorithm* row;
  DataType dtype;
  std::vector<std::size_t> counts;
  bool in_place;
};

std::string describe(const Case& one) {
  std::string text = std::string(one.row->name) + " allgather of " +
                     std::string(data_type_name(one.dtype)) + (one.in_place ? ", in place" : "") +
                     ", counts";
  for (std::size_t count : one.counts) text += " " + std::to_string(count);
  return text;
}

void check_cluster(const Cluster& cluster) {
  const int size = static_cast<int>(cluster.host_of.size());
  const auto rows = rows_of(CollectiveKind::kAllgather, cluster);
  REQUIRE(!rows.empty());
  std::vector<Case> cases;
  for (DataType dtype : all_data_types()) {
    for (std::size_t count : awkward_counts(size)) {
      for (const auto& counts : awkward_splits(count, size)) {
        for (const Algorithm* row : rows)
          cases.push_back({row, dtype, counts, cases.size() % 2 == 0});
      }
    }
  }
  const auto problems = run_cases(
      cluster, cases.size(),
      [&](Group& group, std::size_t index) -> Result<std::uint64_t> {
        const Case& one = cases[index];
        const std::size_t element = element_bytes(one.dtype);
        std::vector<std::byte> expected;
        std::size_t own_begin = 0;
        for (Rank rank = 0; rank < size; ++rank) {
          if (rank == group.rank()) own_begin = expected.size();
          const std::byte* begin = elements(one.dtype, rank).data();
          expected.insert(expected.end(), begin, begin + one.counts[rank] * element);
        }
        CollectiveArgs args;
        args.kind = CollectiveKind::kAllgather;
        args.reduction.dtype = one.dtype;
        args.counts = one.counts;
        args.count = expected.size() / element;
        if (!one.row->supports(args, group)) return Status::internal("not supported");
        Buffer output(expected.size(), index % 3 == 0 ? element : 0);
        const std::size_t own_bytes = one.counts[group.rank()] * element;
        Buffer input(elements(one.dtype, group.rank()).data(), own_bytes, 0);
        args.input = input.data();
        args.output = output.data();
        if (one.in_place) {
          std::copy_n(input.data(), own_bytes, output.data() + own_begin);
          args.input = output.data() + own_begin;
        }
        ALLRING_RETURN_IF_ERROR(one.row->run(args, group, kNoDeadline));
        if (!std::equal(expected.begin(), expected.end(), output.data()))
          return Status::internal("wrong bytes");
        return std::uint64_t{0};
      },
      [&](std::size_t index) { return describe(cases[index]); });
  CHECK(problems == "");
}

TEST_CASE("allgather: every row, column, dtype, size and count") {
  for (const Column& column : kColumns) {
    for (const Cluster& cluster : clusters_of(column)) {
      INFO(column.name << ", " << cluster.host_of.size() << " ranks");
      check_cluster(cluster);
    }
  }
}

}  // namespace
}  // namespace allring::test
