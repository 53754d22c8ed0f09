// 16-bit sums of up to 64 ranks: within one rounding of the exact sum, by whichever row is chosen.
#include <catch2/catch.hpp>

#include "collectives/algorithm/catalog.h"
#include "collectives/kernels/reduce.h"
#include "test/collectives/algorithm/matrix.h"
#include "test/harness/reference.h"

namespace allring::test {
namespace {

/// The chosen row and all others that can run it.
void check(const Cluster& cluster) {
  const int size = static_cast<int>(cluster.host_of.size());
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
      constexpr std::size_t kCount = 2003;
      std::vector<std::vector<std::byte>> inputs;
      for (Rank rank = 0; rank < size; ++rank)
        inputs.push_back(tame_elements(dtype, kCount, rank, 16));
      const Expected expected(inputs, dtype, op);
      const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
        for (const std::size_t count :
             {std::size_t{1}, std::size_t{27}, std::size_t{700}, kCount}) {
          for (const Algorithm& row : algorithms(CollectiveKind::kAllreduce)) {
            CollectiveArgs args;
            args.kind = CollectiveKind::kAllreduce;
            ALLRING_ASSIGN_OR_RETURN(args.reduction, Reduction::resolve(dtype, op, size, 1.0));
            args.count = count;
            args.input = inputs[group.rank()].data();
            std::vector<std::byte> output(args.bytes());
            args.output = output.data();
            if (!row.supports(args, group)) continue;
            ALLRING_RETURN_IF_ERROR(row.run(args, group, deadline_after(seconds(60))));
            const std::string problem = expected.compare(output.data(), 0, count);
            if (!problem.empty()) return Status::internal(std::string(row.name) + ": " + problem);
          }
        }
        return {};
      });
      INFO(size << " ranks, " << data_type_name(dtype) << ", " << reduce_op_name(op));
      CHECK(failures(statuses) == "");
    }
  }
}

TEST_CASE("16-bit sums of a host's ranks round once") {
  check(Cluster::one_host(GENERATE(2, 3, 5, 16, 33, 64), Medium::kInproc, true));
}

TEST_CASE("16-bit sums over hosts round once") {
  const auto [hosts, local] = GENERATE(std::pair(4, 1), std::pair(64, 1), std::pair(2, 2),
                                       std::pair(8, 8), std::pair(2, 32));
  check(Cluster::hosts(std::vector<int>(hosts, local), Medium::kInproc, true));
}

}  // namespace
}  // namespace allring::test
