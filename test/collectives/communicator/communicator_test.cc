#include "collectives/communicator/communicator.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "test/harness/run_ranks.h"

namespace allring::test {
namespace {

std::vector<Cluster> clusters() {
  return {Cluster::one_host(1), Cluster::one_host(3, Medium::kInprocRendezvous),
          Cluster::one_host(4, Medium::kInproc, true),
          Cluster::hosts({2, 2}, Medium::kInprocRendezvous, true),
          Cluster::hosts({1, 3}, Medium::kInproc)};
}

Deadline soon() { return deadline_after(seconds(30)); }

#define EXPECT(condition) \
  if (!(condition)) return Status::internal("not so: " #condition)

TEST_CASE("every collective, chosen by cost or forced, over every kind of cluster") {
  const std::string forced = GENERATE("", "ring", "pairwise", "slots,allreduce=push");
  for (const Cluster& cluster : clusters()) {
    INFO(cluster.host_of.size() << " ranks, forced: " << forced);
    const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
      Communicator communicator(group, ForcedAlgorithms::parse(forced).value());
      const int size = group.size();
      const Rank rank = group.rank();
      const auto ranks = static_cast<std::size_t>(size);

      for (std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{30000}}) {
        std::vector<double> data(count);
        std::iota(data.begin(), data.end(), rank);
        std::vector<double> result(count);
        ALLRING_ASSIGN_OR_RETURN(
            const Reduction average,
            Reduction::resolve(DataType::kFloat64, ReduceOp::kAverage, size, 2.0));
        ALLRING_RETURN_IF_ERROR(
            communicator.allreduce(data.data(), result.data(), count, average, soon()));
        for (std::size_t i = 0; i < count; ++i)
          EXPECT(std::abs(result[i] - (2.0 * i + size - 1)) < 1e-6);
        ALLRING_RETURN_IF_ERROR(
            communicator.allreduce(data.data(), data.data(), count, average, soon()));
        EXPECT(data == result);
      }

      std::vector<std::size_t> counts(ranks);
      std::iota(counts.begin(), counts.end(), std::size_t{0});  // rank 0 has nothing
      const std::size_t total = ranks * (ranks - 1) / 2;
      std::vector<std::int32_t> mine(total, 1 + rank), part(rank);
      ALLRING_ASSIGN_OR_RETURN(const Reduction sum,
                               Reduction::resolve(DataType::kInt32, ReduceOp::kSum, size, 1.0));
      ALLRING_RETURN_IF_ERROR(
          communicator.reduce_scatter(mine.data(), part.data(), counts, sum, soon()));
      for (std::int32_t element : part) EXPECT(element == size * (size + 1) / 2);

      std::vector<std::int32_t> contribution(rank, rank), all(total, -1);
      ALLRING_RETURN_IF_ERROR(communicator.allgather(contribution.data(), all.data(), counts,
                                                     DataType::kInt32, soon()));
      std::size_t place = 0;
      for (Rank from = 0; from < size; ++from) {
        for (Rank k = 0; k < from; ++k) EXPECT(all[place++] == from);
      }

      std::vector<std::int16_t> shared(5, static_cast<std::int16_t>(rank));
      const Rank root = size - 1;
      ALLRING_RETURN_IF_ERROR(
          communicator.broadcast(shared.data(), 5, DataType::kInt16, root, soon()));
      for (std::int16_t element : shared) EXPECT(element == root);

      // Rank r sends r elements to each, the receiver's number.
      std::vector<std::uint8_t> outgoing, incoming(total);
      for (Rank to = 0; to < size; ++to)
        outgoing.insert(outgoing.end(), rank, static_cast<std::uint8_t>(to));
      const std::vector<std::size_t> sends(ranks, rank);
      ALLRING_RETURN_IF_ERROR(communicator.alltoall(outgoing.data(), incoming.data(), sends, counts,
                                                    DataType::kUint8, soon()));
      for (std::uint8_t element : incoming) EXPECT(element == rank);

      return communicator.barrier(soon());
    });
    CHECK(failures(statuses) == "");
  }
}

TEST_CASE("abort ends a blocked collective and all later ones") {
  for (const Cluster& cluster : clusters()) {
    if (cluster.host_of.size() == 1) continue;
    INFO(cluster.host_of.size() << " ranks");
    const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
      Communicator communicator(group, {});
      if (group.rank() == 0) {
        communicator.abort(Status::aborted("shut down"));
        return communicator.barrier(soon());
      }
      return communicator.barrier(soon());
    });
    CHECK_THAT(statuses[0].message(), Catch::Contains("shut down"));
    for (const Status& status : statuses) CHECK_FALSE(status.ok());
  }
}

TEST_CASE("after a failure the communicator fails at once, with the same reason") {
  Cluster cluster = Cluster::one_host(2);
  cluster.abort_others = false;
  const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
    if (group.rank() == 1) return {};
    Communicator communicator(group, {});
    const Status first = communicator.barrier(deadline_after(milliseconds(5)));
    EXPECT(first.code() == StatusCode::kTimedOut);
    const Status second = communicator.barrier(kNoDeadline);
    EXPECT(second.to_string() == first.to_string());
    return {};
  });
  CHECK(failures(statuses) == "");
}

}  // namespace
}  // namespace allring::test
