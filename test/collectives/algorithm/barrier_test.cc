// Every barrier row x column x 1..8 ranks: nobody leaves before all have come.
#include <atomic>
#include <catch2/catch.hpp>

#include "test/collectives/algorithm/matrix.h"

namespace allring::test {
namespace {

TEST_CASE("barrier: nobody leaves before all have come") {
  for (const Column& column : kColumns) {
    for (const Cluster& cluster : clusters_of(column)) {
      const int size = static_cast<int>(cluster.host_of.size());
      for (const Algorithm* row : rows_of(CollectiveKind::kBarrier, cluster)) {
        INFO(row->name << ", " << column.name << ", " << size << " ranks");
        std::atomic<int> arrived{0};
        const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
          CollectiveArgs args;
          for (int round = 1; round <= 100; ++round) {
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
}

}  // namespace
}  // namespace allring::test
