// What happens to the others when a rank dies, is late or is aborted in the middle of a collective.
#include <catch2/catch.hpp>
#include <numeric>
#include <thread>

#include "test/collectives/algorithm/matrix.h"

namespace allring::test {
namespace {

constexpr CollectiveKind kKinds[] = {
    CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter, CollectiveKind::kAllgather,
    CollectiveKind::kBroadcast, CollectiveKind::kAlltoall,      CollectiveKind::kBarrier,
};

/// A float32 collective of any kind, about `count` elements for each rank, with its buffers.
class AnyCollective {
 public:
  AnyCollective(CollectiveKind kind, std::size_t count, const Group& group)
      : counts_(group.size(), count), input_(count * group.size()), output_(count * group.size()) {
    args_.kind = kind;
    args_.count = kind == CollectiveKind::kBarrier ? 0 : input_.size();
    args_.counts = args_.recv_counts = counts_;
    args_.input = input_.data();
    args_.output = output_.data();
  }
  const CollectiveArgs& args() const { return args_; }

 private:
  std::vector<std::size_t> counts_;
  std::vector<float> input_, output_;
  CollectiveArgs args_;
};

TEST_CASE("when a rank dies, each of the others finishes or loses it, and none hangs") {
  // In-process transports tell of a death themselves, as closed connections do.
  constexpr Rank kVictim = 1;
  for (CollectiveKind kind : kKinds) {
    for (const Cluster& base :
         {Cluster::one_host(3), Cluster::one_host(4, Medium::kInprocRendezvous),
          Cluster::hosts({2, 2}, Medium::kInprocRendezvous)}) {
      for (const Algorithm* row : rows_of(kind, base)) {
        bool died = true;
        for (std::uint64_t operation = 1; died && operation < 2000;
             operation += 1 + operation / 8) {
          Cluster cluster = base;
          cluster.fault = {.rank = kVictim, .operation = operation};
          cluster.abort_others = false;
          INFO(row->name << " " << collective_kind_name(kind) << " over " << cluster.host_of.size()
                         << " ranks, operation " << operation);
          const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
            AnyCollective collective(kind, 40000, group);
            const Status status = row->run(collective.args(), group, kNoDeadline);
            // As the communicator does: what is posted must not outlive the buffers.
            if (!status.ok()) group.abort(status);
            return status;
          });
          died = !statuses[kVictim].ok();
          for (Rank rank = 0; rank < static_cast<Rank>(statuses.size()); ++rank) {
            if (rank == kVictim || statuses[rank].ok()) continue;
            INFO("rank " << rank << ": " << statuses[rank].to_string());
            CHECK(died);
            CHECK(statuses[rank].code() == StatusCode::kPeerLost);
            CHECK(statuses[rank].lost_rank() == kVictim);
          }
        }
        CHECK_FALSE(died);  // in the end the fault lay behind the end
      }
    }
  }
}

TEST_CASE("an abort reaches ranks that wait for one that never comes") {
  for (CollectiveKind kind : kKinds) {
    for (const Cluster& cluster :
         {Cluster::one_host(3), Cluster::one_host(3, Medium::kInproc, true),
          Cluster::one_host(3, Medium::kShm), Cluster::one_host(3, Medium::kTcp)}) {
      for (const Algorithm* row : rows_of(kind, cluster)) {
        INFO(row->name << " " << collective_kind_name(kind));
        const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
          // Of a broadcast the leaves wait.
          if (group.rank() == 0) return Status::internal("rank 0 has crashed");
          // Small enough for a line.
          AnyCollective collective(kind, 2, group);
          return row->run(collective.args(), group, kNoDeadline);
        });
        for (Rank rank : {1, 2}) {
          INFO("rank " << rank << ": " << statuses[rank].to_string());
          // Alone among themselves some may finish.
          if (statuses[rank].ok()) continue;
          CHECK(statuses[rank].code() != StatusCode::kTimedOut);
          CHECK_THAT(statuses[rank].message(), Catch::Contains("rank 0 has crashed"));
        }
        if (kind != CollectiveKind::kAlltoall) CHECK_FALSE(statuses[1].ok());
      }
    }
  }
}

TEST_CASE("a deadline ends a collective that one rank does not enter") {
  for (CollectiveKind kind : kKinds) {
    for (const Cluster& base :
         {Cluster::one_host(3), Cluster::one_host(3, Medium::kInproc, true),
          Cluster::one_host(3, Medium::kShm), Cluster::one_host(3, Medium::kTcp)}) {
      Cluster cluster = base;
      cluster.abort_others = false;
      for (const Algorithm* row : rows_of(kind, cluster)) {
        INFO(row->name << " " << collective_kind_name(kind));
        const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
          if (group.rank() == 0) return {};
          AnyCollective collective(kind, 2, group);
          const Status status =
              row->run(collective.args(), group, deadline_after(milliseconds(20)));
          if (!status.ok()) group.abort(status);
          return status;
        });
        CHECK(statuses[0].ok());
        // One of them times out; the other does, too, or loses it.
        bool timed_out = false;
        for (Rank rank : {1, 2}) {
          INFO("rank " << rank << ": " << statuses[rank].to_string());
          CHECK_FALSE(statuses[rank].ok());
          timed_out = timed_out || statuses[rank].code() == StatusCode::kTimedOut;
        }
        CHECK(timed_out);
      }
    }
  }
}

}  // namespace
}  // namespace allring::test
