// Every barrier row x column x 1..8 ranks: nobody leaves before all have come.
#include <atomic>
#include <catch2/catch.hpp>

#include "test/collectives/algorithm/matrix.h"

namespace allring::test {
namespace {

TEST_CASE("barrier: nobody leaves before all have come") {
  for (const Cluster& cluster : one_host_clusters()) {
    const int size = static_cast<int>(cluster.host_of.size());
    for (const Algorithm* row : rows_of(CollectiveKind::kBarrier, cluster)) {
      INFO(row->name << ", " << size << " ranks, " << medium_name(cluster.medium)
                     << ", host memory " << cluster.host_memory);
      std::atomic<int> arrived{0};
      const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
        CollectiveArgs args;
        for (int round = 1; round <= 200; ++round) {
          ++arrived;
          ALLRING_RETURN_IF_ERROR(row->run(args, group, kNoDeadline));
          if (const int seen = arrived; seen < round * size)
            return Status::internal("left barrier " + std::to_string(round) + " when " +
                                    std::to_string(seen) + " had come");
        }
        return {};
      });
      CHECK(failures(statuses) == "");
    }
  }
}

}  // namespace
}  // namespace allring::test
