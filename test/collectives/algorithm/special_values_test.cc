// NaN, infinities and signed zeros through every reducing row, and 16-bit sums to the last bit.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "test/collectives/algorithm/matrix.h"
#include "test/collectives/kernels/reference.h"

namespace allring::test {
namespace {

std::vector<Cluster> some_clusters() {
  return {Cluster::one_host(2), Cluster::one_host(3, Medium::kInprocRendezvous),
          Cluster::one_host(5), Cluster::one_host(4, Medium::kInproc, true),
          Cluster::hosts({2, 2}, Medium::kInproc, true)};
}

CollectiveArgs allreduce_of(DataType dtype, ReduceOp op, int size, std::size_t count) {
  CollectiveArgs args;
  args.kind = CollectiveKind::kAllreduce;
  args.reduction = Reduction::resolve(dtype, op, size, 1.0).value();
  args.count = count;
  return args;
}

/// Runs every row on `inputs` and hands each rank's result to `check`.
template <typename T>
void for_all_rows(const Cluster& cluster, const CollectiveArgs& base,
                  const std::vector<std::vector<T>>& inputs,
                  const std::function<std::string(const std::vector<T>&)>& check) {
  for (const Algorithm* row : rows_of(CollectiveKind::kAllreduce, cluster)) {
    const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
      CollectiveArgs args = base;
      if (!row->supports(args, group)) return {};
      std::vector<T> output(inputs[0].size());
      args.input = inputs[group.rank()].data();
      args.output = output.data();
      ALLRING_RETURN_IF_ERROR(row->run(args, group, kNoDeadline));
      const std::string problem = check(output);
      return problem.empty() ? Status() : Status::internal(std::string(row->name) + ": " + problem);
    });
    CHECK(failures(statuses) == "");
  }
}

TEST_CASE("NaN of any rank reaches all ranks, for every op") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Cluster& cluster : some_clusters()) {
    const int size = static_cast<int>(cluster.host_of.size());
    for (ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct}) {
      // Element i is NaN on rank i % (size + 1), or nowhere.
      constexpr std::size_t kCount = 203;
      std::vector<std::vector<float>> inputs(size, std::vector<float>(kCount, 1.0f));
      for (std::size_t i = 0; i < kCount; ++i) {
        if (i % (size + 1) < static_cast<std::size_t>(size)) inputs[i % (size + 1)][i] = nan;
      }
      for_all_rows<float>(cluster, allreduce_of(DataType::kFloat32, op, size, kCount), inputs,
                          [&](const std::vector<float>& output) -> std::string {
                            for (std::size_t i = 0; i < kCount; ++i) {
                              const bool expected = i % (size + 1) < static_cast<std::size_t>(size);
                              if (std::isnan(output[i]) != expected)
                                return std::string(reduce_op_name(op)) + ", element " +
                                       std::to_string(i) + " is " + std::to_string(output[i]);
                            }
                            return {};
                          });
    }
  }
}

TEST_CASE("infinities add up, cancel to NaN, and win or lose comparisons") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Cluster& cluster : some_clusters()) {
    const int size = static_cast<int>(cluster.host_of.size());
    std::vector<std::vector<double>> inputs(size, std::vector<double>{1, 1, 1, -infinity});
    inputs[0] = {infinity, infinity, 1, -infinity};
    inputs[size - 1] = {1, -infinity, -infinity, -infinity};
    const auto run = [&](ReduceOp op, std::vector<double> expected) {
      for_all_rows<double>(cluster, allreduce_of(DataType::kFloat64, op, size, 4), inputs,
                           [&](const std::vector<double>& output) -> std::string {
                             for (std::size_t i = 0; i < 4; ++i) {
                               const bool both_nan =
                                   std::isnan(output[i]) && std::isnan(expected[i]);
                               if (!both_nan && output[i] != expected[i])
                                 return std::string(reduce_op_name(op)) + ", element " +
                                        std::to_string(i) + " is " + std::to_string(output[i]);
                             }
                             return {};
                           });
    };
    run(ReduceOp::kSum, {infinity, std::nan(""), -infinity, -infinity});
    run(ReduceOp::kMin, {1, -infinity, -infinity, -infinity});
    run(ReduceOp::kMax, {infinity, infinity, 1, -infinity});
  }
}

TEST_CASE("16-bit sums and averages are rounded once, on every row") {
  const DataType dtype = GENERATE(DataType::kFloat16, DataType::kBfloat16);
  for (const Cluster& cluster : some_clusters()) {
    const int size = static_cast<int>(cluster.host_of.size());
    constexpr std::size_t kCount = 1009;
    std::mt19937 random(11);
    std::uniform_real_distribution<float> values(-4, 4);
    std::vector<std::vector<std::uint16_t>> inputs(size, std::vector<std::uint16_t>(kCount));
    for (auto& input : inputs) {
      for (std::uint16_t& element : input) element = nearest_half(values(random), dtype);
    }
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
      for_all_rows<std::uint16_t>(
          cluster, allreduce_of(dtype, op, size, kCount), inputs,
          [&](const std::vector<std::uint16_t>& output) -> std::string {
            for (std::size_t i = 0; i < kCount; ++i) {
              // Sums of so few such numbers are exact in float32 and in double.
              double total = 0;
              for (const auto& input : inputs) total += half_value(input[i], dtype);
              if (op == ReduceOp::kAverage) total /= size;
              const std::uint16_t expected = nearest_half(static_cast<float>(total), dtype);
              if (output[i] != expected && !(output[i] == 0x8000 && expected == 0))
                return "element " + std::to_string(i) + " is " +
                       std::to_string(half_value(output[i], dtype)) + ", the sum is " +
                       std::to_string(total);
            }
            return {};
          });
    }
  }
}

}  // namespace
}  // namespace allring::test
