// What an allreduce sends: no more than the bound, and 16-bit floats half of what float32 does.
#include <algorithm>
#include <catch2/catch.hpp>
#include <mutex>

#include "collectives/algorithm/catalog.h"
#include "collectives/kernels/reduce.h"
#include "test/harness/run_ranks.h"

namespace allring::test {
namespace {

/// Counts the bytes that leave the host.
class CountingTransport final : public Transport {
 public:
  CountingTransport(Transport& below, const Topology& topology)
      : below_(below), topology_(topology) {}

  Rank rank() const override { return below_.rank(); }
  int size() const override { return below_.size(); }
  Result<Ticket> post_send(Rank peer, Tag tag, std::span<const std::byte> bytes) override {
    if (topology_.host(peer) != topology_.host(rank())) leaving_ += bytes.size();
    return below_.post_send(peer, tag, bytes);
  }
  Result<Ticket> post_recv(Rank peer, Tag tag, std::span<std::byte> bytes) override {
    return below_.post_recv(peer, tag, bytes);
  }
  Status wait(Ticket ticket, Deadline deadline) override { return below_.wait(ticket, deadline); }
  void abort(Status reason) noexcept override { below_.abort(std::move(reason)); }

  std::size_t leaving() const { return leaving_; }

 private:
  Transport& below_;
  const Topology& topology_;
  std::size_t leaving_ = 0;
};

/// Of the host that sends most, in the row that is chosen, or in the named one.
std::size_t bytes_leaving(const std::vector<int>& hosts, DataType dtype, std::size_t count,
                          const std::string& row = "") {
  std::mutex mutex;
  std::vector<std::size_t> leaving(hosts.size());
  const auto statuses =
      run_ranks(Cluster::hosts(hosts, Medium::kInproc, true), [&](Group& group) -> Status {
        CountingTransport counting(group.transport(), group.topology());
        Group counted(group.topology(), counting, group.host_memory());
        build_hierarchy(counted, group.local() ? group.local()->host_memory() : nullptr);
        CollectiveArgs args;
        args.kind = CollectiveKind::kAllreduce;
        ALLRING_ASSIGN_OR_RETURN(args.reduction,
                                 Reduction::resolve(dtype, ReduceOp::kSum, group.size(), 1.0));
        args.count = count;
        std::vector<std::byte> memory(args.bytes());
        args.input = args.output = memory.data();
        ALLRING_ASSIGN_OR_RETURN(const ForcedAlgorithms forced, ForcedAlgorithms::parse(row));
        ALLRING_RETURN_IF_ERROR(
            choose(args, counted, forced).run(args, counted, deadline_after(seconds(60))));
        std::lock_guard lock(mutex);
        leaving[group.topology().host(group.rank())] += counting.leaving();
        return {};
      });
  CHECK(failures(statuses) == "");
  return *std::max_element(leaving.begin(), leaving.end());
}

constexpr std::size_t kCount = 4 * 3 * 5 * 20'000;

TEST_CASE("16-bit floats halve the bytes between hosts") {
  for (const std::vector<int>& hosts :
       {std::vector<int>{1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1, 1}}) {
    INFO(hosts.size() << " hosts");
    const std::size_t full = bytes_leaving(hosts, DataType::kFloat32, kCount);
    CHECK(full == 2 * 4 * kCount * (hosts.size() - 1) / hosts.size());
    CHECK(2 * bytes_leaving(hosts, DataType::kFloat16, kCount) == full);
    CHECK(2 * bytes_leaving(hosts, DataType::kBfloat16, kCount) == full);
  }
}

TEST_CASE("between hosts of several ranks 16-bit floats take three quarters") {
  const auto [hosts, local] = GENERATE(std::pair(2, 2), std::pair(2, 8), std::pair(4, 2));
  const std::vector<int> ranks(hosts, local);
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    INFO(hosts << " hosts of " << local);
    const std::size_t sent = bytes_leaving(ranks, dtype, kCount);
    const std::size_t least = 3 * 2 * kCount * (hosts - 1) / hosts;
    CHECK(sent >= least);
    CHECK(sent <= least + least / 5'000);  // segments do not split evenly
  }
}

TEST_CASE("a host sends what one rank in its place would send") {
  const auto [hosts, local] = GENERATE(std::pair(2, 2), std::pair(2, 3), std::pair(4, 2));
  const std::vector<int> ranks(hosts, local);
  for (const char* row : {"", "hierarchical", "ring"}) {
    INFO(hosts << " hosts of " << local << ", row " << row);
    const std::size_t all = 2 * 4 * kCount;
    const std::size_t sent = bytes_leaving(ranks, DataType::kFloat32, kCount, row);
    // A ring crosses each host's border with every chunk but one.
    const std::size_t parts = std::string(row) == "ring" ? hosts * local : hosts;
    const std::size_t least = all * (parts - 1) / parts;
    CHECK(sent >= least);
    CHECK(sent <= least + least / 5'000);  // segments do not split evenly
  }
}

}  // namespace
}  // namespace allring::test
