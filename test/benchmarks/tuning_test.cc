// hvdbench tune and explain, over ranks that are threads.
#include <catch2/catch.hpp>
#include <mutex>
#include <string>

#include "benchmarks/bench/explain_command.h"
#include "benchmarks/bench/tune.h"
#include "test/harness/run_ranks.h"

namespace allring::bench {
namespace {

using test::Cluster;
using test::Medium;

/// What all ranks have measured, which must be the same.
Tuning tuning_of(const Cluster& cluster, std::string* text) {
  std::mutex mutex;
  std::vector<Tuning> tunings;
  const auto statuses = test::run_ranks(cluster, [&](Group& group) -> Status {
    ALLRING_ASSIGN_OR_RETURN(const Tuning tuning, tune(group));
    std::lock_guard lock(mutex);
    tunings.push_back(tuning);
    if (group.rank() == 0) *text = tuning.to_text(group);
    return {};
  });
  REQUIRE(test::failures(statuses) == "");
  for (const Tuning& tuning : tunings) CHECK(tuning.costs == tunings[0].costs);
  return tunings[0];
}

TEST_CASE("tune measures the media that there are, and all ranks the same") {
  std::string text;
  const CostParameters defaults;
  const Tuning one = tuning_of(Cluster::one_host(2, Medium::kShm, true), &text);
  CHECK((one.host_memory && one.within_host && !one.between_hosts));
  CHECK(one.costs.between_hosts == defaults.between_hosts);
  CHECK(one.costs.host_memory != defaults.host_memory);
  CHECK(one.costs.within_host != defaults.within_host);
  CHECK(text.find("Not measured, these are the defaults: between_hosts") != std::string::npos);
  CHECK(CostParameters::parse(text).value() == one.costs);

  const Tuning two = tuning_of(Cluster::hosts({1, 1}, Medium::kShm), &text);
  CHECK((!two.host_memory && !two.within_host && two.between_hosts));
  CHECK(two.costs.between_hosts != defaults.between_hosts);

  const Tuning both = tuning_of(Cluster::hosts({2, 2}, Medium::kShm, true), &text);
  CHECK((both.host_memory && both.within_host && both.between_hosts));
  CHECK(text.find("defaults") == std::string::npos);
}

TEST_CASE("explain names the row that runs first, and why others cannot") {
  std::string text, forced, chosen;
  const auto statuses =
      test::run_ranks(Cluster::one_host(2, Medium::kInproc, true), [&](Group& group) -> Status {
        if (group.rank() != 0) return {};
        CollectiveArgs args;
        args.kind = CollectiveKind::kAllreduce;
        args.count = 1 << 18;
        text = explanation(args, group, {});
        chosen = choose(args, group, {}).name;
        forced = explanation(args, group, ForcedAlgorithms::parse("ring").value());
        return {};
      });
  CHECK(test::failures(statuses) == "");
  CHECK(text.find("allreduce of 1048576 bytes (262144 float32) over 2 ranks on 1 hosts:\n-> " +
                  chosen) == 0);
  CHECK(text.find("takes shorter ones only") != std::string::npos);
  CHECK(forced.find("runs: ALGORITHM forces it") != std::string::npos);
  CHECK(forced.find("-> ring") != std::string::npos);
}

}  // namespace
}  // namespace allring::bench
