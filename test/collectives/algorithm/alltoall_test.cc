// Every alltoall row x column x dtype x 1..8 ranks x random counts between each pair, some empty.
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "test/collectives/algorithm/matrix.h"

namespace allring::test {
namespace {

struct Case {
  const Algorithm* row;
  DataType dtype;
  std::vector<std::vector<std::size_t>> counts;  // [from][to]
};

/// About `count` elements from each rank.
std::vector<std::vector<std::size_t>> random_counts(std::size_t count, int size,
                                                    std::mt19937& random) {
  std::vector<std::vector<std::size_t>> counts(size, std::vector<std::size_t>(size));
  for (auto& row : counts) {
    std::size_t rest = count;
    for (std::size_t& one : row) {
      if (random() % 3 == 0) continue;
      one = std::min(rest, random() % (2 * count / size + 1));
      rest -= one;
    }
  }
  return counts;
}

std::size_t total(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

void check_cluster(const Cluster& cluster) {
  const int size = static_cast<int>(cluster.host_of.size());
  const auto rows = rows_of(CollectiveKind::kAlltoall, cluster);
  REQUIRE(!rows.empty());
  std::mt19937 random(7);
  std::vector<Case> cases;
  for (DataType dtype : all_data_types()) {
    for (std::size_t count : awkward_counts(size)) {
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto counts = random_counts(count, size, random);
        for (const Algorithm* row : rows) cases.push_back({row, dtype, counts});
      }
    }
  }
  const auto problems = run_cases(
      cluster, cases.size(),
      [&](Group& group, std::size_t index) -> Result<std::uint64_t> {
        const Case& one = cases[index];
        const Rank rank = group.rank();
        const std::size_t element = element_bytes(one.dtype);
        std::vector<std::size_t> recv_counts;
        std::vector<std::byte> expected;
        for (Rank from = 0; from < size; ++from) {
          const auto& sent = one.counts[from];
          recv_counts.push_back(sent[rank]);
          const std::size_t before =
              std::accumulate(sent.begin(), sent.begin() + rank, std::size_t{0});
          const std::byte* begin = elements(one.dtype, from).data() + before * element;
          expected.insert(expected.end(), begin, begin + sent[rank] * element);
        }
        CollectiveArgs args;
        args.kind = CollectiveKind::kAlltoall;
        args.reduction.dtype = one.dtype;
        args.counts = one.counts[rank];
        args.recv_counts = recv_counts;
        args.count = total(one.counts[rank]);
        if (!one.row->supports(args, group)) return Status::internal("not supported");
        Buffer input(elements(one.dtype, rank).data(), args.bytes(), index % 3 == 0 ? element : 0);
        Buffer output(expected.size(), 0);
        args.input = input.data();
        args.output = output.data();
        ALLRING_RETURN_IF_ERROR(one.row->run(args, group, kNoDeadline));
        if (!std::equal(expected.begin(), expected.end(), output.data()))
          return Status::internal("wrong bytes");
        return std::uint64_t{0};
      },
      [&](std::size_t index) {
        const Case& one = cases[index];
        std::string text = std::string(one.row->name) + " alltoall of " +
                           std::string(data_type_name(one.dtype)) + ", counts from rank 0";
        for (std::size_t count : one.counts[0]) text += " " + std::to_string(count);
        return text;
      });
  CHECK(problems == "");
}

TEST_CASE("alltoall: every row, column, dtype and size") {
  for (const Column& column : kColumns) {
    for (const Cluster& cluster : clusters_of(column)) {
      INFO(column.name << ", " << cluster.host_of.size() << " ranks");
      check_cluster(cluster);
    }
  }
}

}  // namespace
}  // namespace allring::test
