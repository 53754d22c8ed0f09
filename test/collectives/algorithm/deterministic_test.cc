// With DETERMINISTIC the bits of a float result depend on the inputs alone: not on row, network,
// hosts, slots, length or place in the vector.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "collectives/communicator/communicator.h"
#include "collectives/schedule/chunks.h"
#include "test/collectives/algorithm/matrix.h"

namespace allring::test {
namespace {

constexpr std::size_t kCount = 9001;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
// The sanitizers watch the rows, not the kernels.
constexpr DataType kFloats[] = {DataType::kFloat16, DataType::kFloat32};
constexpr ReduceOp kOps[] = {ReduceOp::kAverage, ReduceOp::kMin};
constexpr int kMostRanks = 3;
#else
constexpr DataType kFloats[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32,
                                DataType::kFloat64};
constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kProduct};
constexpr int kMostRanks = 5;
#endif

/// Of many magnitudes, so that each order of adding rounds otherwise, and with zeros of both signs.
std::vector<std::byte> telling_elements(DataType dtype, Rank rank) {
  std::mt19937 random(1 + rank);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  std::vector<double> values(kCount);
  for (double& value : values) {
    value = std::ldexp(mantissa(random), static_cast<int>(random() % 20) - 10);
    if (random() % 50 == 0) value = 0;
    if (random() % 50 == 0) value = -0.0;
  }
  const std::vector<float> singles(values.begin(), values.end());
  std::vector<std::byte> bytes(kCount * element_bytes(dtype));
  auto* halves = reinterpret_cast<std::uint16_t*>(bytes.data());
  if (dtype == DataType::kFloat64) std::memcpy(bytes.data(), values.data(), bytes.size());
  if (dtype == DataType::kFloat32) std::memcpy(bytes.data(), singles.data(), bytes.size());
  if (dtype == DataType::kFloat16) float32_to_float16(halves, singles.data(), kCount);
  if (dtype == DataType::kBfloat16) float32_to_bfloat16(halves, singles.data(), kCount);
  return bytes;
}

/// One reduction with the inputs of all ranks and what comes of them in the order of ranks.
struct Problem {
  Reduction reduction;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::byte> expected;

  Problem(DataType dtype, ReduceOp op, int size)
      : reduction(Reduction::resolve(dtype, op, size, 1.0 / 3).value()) {
    std::vector<const void*> sources;
    for (Rank rank = 0; rank < size; ++rank) inputs.push_back(telling_elements(dtype, rank));
    for (const auto& input : inputs) sources.push_back(input.data());
    expected.resize(inputs[0].size());
    void* sum = expected.data();
    reduce({&sum, 1}, sources, kCount, reduction);
  }
};

/// All float problems for `size` ranks.
const std::vector<Problem>& problems_for(int size) {
  static const auto made = [] {
    std::vector<std::vector<Problem>> all(6);
    for (int ranks = 2; ranks <= 5; ++ranks) {
      for (const DataType dtype : kFloats)
        for (const ReduceOp op : kOps) all[ranks].emplace_back(dtype, op, ranks);
    }
    return all;
  }();
  return made[size];
}

Communicator communicator_of(Group& group, const std::string& algorithm, bool deterministic) {
  ForcedAlgorithms forced = ForcedAlgorithms::parse(algorithm).value();
  forced.set_deterministic(deterministic);
  return Communicator(group, std::move(forced));
}

Status different(const Problem& problem, const char* what, std::size_t offset, std::size_t count) {
  return Status::internal(std::string(what) + " of " + std::to_string(count) + " " +
                          std::string(data_type_name(problem.reduction.dtype)) + " at " +
                          std::to_string(offset) + ", " +
                          std::string(reduce_op_name(problem.reduction.op)) + ": other bits");
}

/// In the arena where there is one, so that `direct` copies nothing.
std::shared_ptr<std::byte[]> memory_of(Group& group, std::size_t bytes) {
  const std::shared_ptr<Arena> arena = group.arena().arena;
  if (arena == nullptr) return std::shared_ptr<std::byte[]>(new std::byte[bytes]);
  return {arena->allocate(bytes).value(), [arena](std::byte* data) { arena->free(data); }};
}

/// Elements [offset, offset + count) of the problem, as a collective of their own.
Status check_allreduce(Communicator& communicator, const Problem& problem, std::size_t offset,
                       std::size_t count) {
  const std::size_t element = element_bytes(problem.reduction.dtype);
  Group& group = communicator.group();
  const auto data = memory_of(group, count * element);
  std::memcpy(data.get(), problem.inputs[group.rank()].data() + offset * element, count * element);
  ALLRING_RETURN_IF_ERROR(
      communicator.allreduce(data.get(), data.get(), count, problem.reduction, kNoDeadline));
  if (std::memcmp(data.get(), problem.expected.data() + offset * element, count * element) == 0)
    return {};
  return different(problem, "allreduce", offset, count);
}

Status check_reduce_scatter(Communicator& communicator, const Problem& problem, bool even) {
  const int size = communicator.group().size();
  const Rank rank = communicator.group().rank();
  const std::size_t element = element_bytes(problem.reduction.dtype);
  const auto counts = even ? even_counts(kCount, size) : awkward_splits(kCount, size).back();
  const std::size_t offset = offsets_of(counts)[rank];
  std::vector<std::byte> output(counts[rank] * element);
  ALLRING_RETURN_IF_ERROR(communicator.reduce_scatter(problem.inputs[rank].data(), output.data(),
                                                      counts, problem.reduction, kNoDeadline));
  if (output.empty() ||
      std::memcmp(output.data(), problem.expected.data() + offset * element, output.size()) == 0)
    return {};
  return different(problem, "reduce_scatter", offset, counts[rank]);
}

Status check_all(Communicator& communicator) {
  for (const Problem& problem : problems_for(communicator.group().size())) {
    // Whole, in parts that start and end anywhere, and so short that the quickest rows take them.
    for (const auto& [offset, count] : std::vector<std::pair<std::size_t, std::size_t>>{
             {0, kCount}, {1, kCount - 1}, {17, 1003}, {5, 64}, {3, 7}, {kCount - 1, 1}})
      ALLRING_RETURN_IF_ERROR(check_allreduce(communicator, problem, offset, count));
    for (const bool even : {true, false})
      ALLRING_RETURN_IF_ERROR(check_reduce_scatter(communicator, problem, even));
  }
  return {};
}

std::vector<Cluster> some_clusters() {
  std::vector<Cluster> clusters;
  for (int size = 2; size <= kMostRanks; ++size) {
    for (const Column& column : kColumns)
      clusters.push_back(Cluster::one_host(size, column.medium, column.host_memory));
    clusters.push_back(Cluster::one_host(size, Medium::kInproc, true));
    clusters.back().shape.slot_bytes = 4096;
  }
  for (const std::vector<int>& hosts :
       {std::vector<int>{1, 1}, {2, 1}, {2, 2}, {2, 3}, {1, 1, 1}}) {
    clusters.push_back(Cluster::hosts(hosts, Medium::kInproc, true));
    clusters.push_back(Cluster::hosts(hosts, Medium::kShm, true));
  }
  return clusters;
}

std::string describe(const Cluster& cluster) {
  std::string text = medium_name(cluster.medium) + ", slots of " +
                     std::to_string(cluster.shape.slot_bytes) + (cluster.host_memory ? "" : "*0");
  for (const std::string& host : cluster.host_of) text += " " + host;
  return text;
}

TEST_CASE("every row, network and topology leaves the bits of the sum in the order of ranks") {
  // Rows that cannot, or do not add in that order, are replaced.
  for (const char* algorithm : {"", "line", "oneshot", "direct", "push", "ring", "halving_doubling",
                                "hierarchical", "pairwise", "slots"}) {
    for (const Cluster& cluster : some_clusters()) {
      INFO(describe(cluster) << ", algorithm \"" << algorithm << "\"");
      const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
        Communicator communicator = communicator_of(group, algorithm, true);
        return check_all(communicator);
      });
      CHECK(failures(statuses) == "");
    }
  }
}

TEST_CASE("twenty runs, the same bits") {
  for (const Cluster& cluster : {Cluster::one_host(4, Medium::kShm), Cluster::one_host(5),
                                 Cluster::hosts({2, 2}, Medium::kShm, true)}) {
    for (int run = 0; run < 20; ++run) {
      const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
        Communicator communicator = communicator_of(group, "", true);
        const std::vector<Problem>& all = problems_for(group.size());
        const Problem& problem = all[run % all.size()];
        return check_allreduce(communicator, problem, 0, kCount);
      });
      CHECK(failures(statuses) == "");
    }
  }
}

// Or the cases above could not fail.
TEST_CASE("without the option these inputs tell other orders apart") {
  for (const std::string algorithm : {"ring", "halving_doubling"}) {
    for (const Problem& problem : problems_for(4)) {
      if (is_half(problem.reduction.dtype)) continue;
      const auto statuses = run_ranks(Cluster::one_host(4), [&](Group& group) -> Status {
        Communicator communicator = communicator_of(group, algorithm, false);
        return check_allreduce(communicator, problem, 0, kCount);
      });
      INFO(algorithm << " " << data_type_name(problem.reduction.dtype) << " "
                     << reduce_op_name(problem.reduction.op));
      CHECK(failures(statuses).find("other bits") != std::string::npos);
    }
  }
}

TEST_CASE("what rounds nothing stays with the quickest row") {
  const auto statuses =
      run_ranks(Cluster::hosts({2, 2}, Medium::kInproc, true), [&](Group& group) -> Status {
        ForcedAlgorithms forced = ForcedAlgorithms::parse("hierarchical").value();
        forced.set_deterministic(true);
        CollectiveArgs args;
        args.kind = CollectiveKind::kAllreduce;
        args.count = kCount;
        std::string chosen;
        for (const DataType dtype : {DataType::kInt32, DataType::kFloat32}) {
          args.reduction.dtype = dtype;
          chosen += std::string(choose(args, group, forced).name) + " ";
        }
        args.kind = CollectiveKind::kBroadcast;
        chosen += choose(args, group, forced).name;
        return chosen == "hierarchical pairwise binomial" ? Status() : Status::internal(chosen);
      });
  CHECK(failures(statuses) == "");
}

}  // namespace
}  // namespace allring::test
