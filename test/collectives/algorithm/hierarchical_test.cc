// The pipeline of the hierarchical row when it is long: segments under way within the host and
// between hosts at the same time, over every medium.
#include "collectives/algorithm/hierarchical.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "test/harness/run_ranks.h"

namespace allring::test {
namespace {

Status sum_everything(Group& group, std::size_t count, bool in_place) {
  std::vector<std::int64_t> input(count), output(count);
  for (std::size_t i = 0; i < count; ++i)
    input[i] = static_cast<std::int64_t>(i) * (group.rank() + 1);
  const std::int64_t ranks = group.size();
  CollectiveArgs args;
  args.kind = CollectiveKind::kAllreduce;
  args.reduction = {DataType::kInt64, ReduceOp::kSum, 1.0, ranks};
  args.count = count;
  args.input = input.data();
  args.output = in_place ? input.data() : output.data();
  if (!kHierarchicalAllreduce.supports(args, group)) return Status::internal("not supported");
  ALLRING_RETURN_IF_ERROR(kHierarchicalAllreduce.run(args, group, deadline_after(seconds(60))));
  const auto& result = in_place ? input : output;
  for (std::size_t i = 0; i < count; ++i) {
    if (result[i] != static_cast<std::int64_t>(i) * ((ranks + 1) * ranks / 2) / ranks)
      return Status::internal("element " + std::to_string(i) + " is wrong");
  }
  return {};
}

TEST_CASE("long hierarchical allreduces over every medium") {
  for (Medium medium : {Medium::kInproc, Medium::kInprocRendezvous, Medium::kShm,
                        Medium::kUnixSockets, Medium::kTcp}) {
    for (const auto& hosts : {std::vector<int>{2, 2}, {3, 3}, {2, 2, 2}}) {
      for (bool host_memory : {false, true}) {
        INFO(medium_name(medium) << ", " << hosts.size() << " hosts of " << hosts[0]
                                 << ", host memory " << host_memory);
        const auto statuses =
            run_ranks(Cluster::hosts(hosts, medium, host_memory), [](Group& group) -> Status {
              for (std::size_t count : {3, 70001, 700001}) {
                ALLRING_RETURN_IF_ERROR(sum_everything(group, count, count % 7 == 1));
                ALLRING_RETURN_IF_ERROR(sum_everything(group, count, true));
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
