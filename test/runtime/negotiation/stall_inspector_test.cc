#include "runtime/negotiation/stall_inspector.h"

#include <catch2/catch.hpp>

using namespace allring;

namespace {

const std::vector<Rank> kMembers = {0, 1, 2, 3};
const std::vector<std::string> kDescriptions = {"rank 0 (host a)", "rank 1 (host a)",
                                                "rank 2 (host b)", "rank 3 (host b)"};

TimePoint at(double second) {
  return TimePoint(nanoseconds(static_cast<std::int64_t>(second * 1e9)));
}

struct Fixture {
  StallInspector inspector{{seconds(60), seconds(600)}};
  bool warned[4] = {};
  std::vector<StallInspector::Waiting> waiting;

  StallInspector::Verdict inspect(double now) {
    return inspector.inspect(waiting, at(now), kMembers, kDescriptions);
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "one warning, then an error, on time") {
  CHECK(inspector.next_check() == TimePoint::max());
  inspector.started_waiting(at(10));
  CHECK(inspector.next_check() == at(70));
  waiting = {{"allreduce \"x\"", at(10), {0, 2}, {1, 3}, &warned[0]}};
  CHECK(inspect(69.9).warnings.empty());
  CHECK(inspector.next_check() == at(70));
  const auto verdict = inspect(70);
  REQUIRE(verdict.warnings.size() == 1);
  CHECK(verdict.warnings[0] ==
        "allreduce \"x\": submitted by ranks 0,2 60 s ago, still waiting for rank 1 (host a) and "
        "rank 3 (host b); an error after 600 s. Do all ranks submit the same tensors, or is one "
        "of them slow or stuck?");
  CHECK(verdict.expired.empty());
  CHECK(inspector.next_check() == at(610));
  CHECK(inspect(300).warnings.empty());
  CHECK(inspect(610).expired == std::vector<std::size_t>{0});
  CHECK(inspector.error_text(waiting[0], at(610), kMembers, kDescriptions) ==
        "allreduce \"x\": submitted by ranks 0,2, but not by rank 1 (host a) and rank 3 (host b) "
        "within 600 s. Submit it on all ranks, or raise ALLRING_STALL_SHUTDOWN_TIME_SECONDS");
}

TEST_CASE_METHOD(Fixture, "one report for each set of missing ranks") {
  waiting = {{"allreduce \"a\"", at(0), {0}, {1, 2, 3}, &warned[0]},
             {"allreduce \"b\"", at(1), {0}, {1, 2, 3}, &warned[1]},
             {"broadcast \"c\"", at(2), {0, 1, 2}, {3}, &warned[2]}};
  const auto verdict = inspect(100);
  REQUIRE(verdict.warnings.size() == 2);
  CHECK(verdict.warnings[0].find(
            "allreduce \"a\" and allreduce \"b\": submitted by rank 0 100 s") == 0);
  CHECK(verdict.warnings[1].find("broadcast \"c\": submitted by ranks 0,1,2 98 s") == 0);
}

TEST_CASE_METHOD(Fixture, "a later tensor has its own time") {
  inspector.started_waiting(at(0));
  waiting = {{"allreduce \"a\"", at(0), {0}, {1}, &warned[0]}};
  inspect(60);
  CHECK(inspector.next_check() == at(600));
  inspector.started_waiting(at(100));
  CHECK(inspector.next_check() == at(160));
  waiting.push_back({"allreduce \"b\"", at(100), {0}, {1}, &warned[1]});
  CHECK(inspect(160).warnings.size() == 1);
  waiting.clear();
  CHECK(inspect(600).expired.empty());
  CHECK(inspector.next_check() == TimePoint::max());
}

TEST_CASE("limits that are off") {
  bool warned = false;
  const std::vector<StallInspector::Waiting> waiting = {
      {"allreduce \"a\"", at(0), {0}, {1}, &warned}};
  StallInspector never(StallLimits::never());
  never.started_waiting(at(0));
  CHECK(never.next_check() == TimePoint::max());
  const auto nothing = never.inspect(waiting, at(1e6), kMembers, kDescriptions);
  CHECK(nothing.warnings.empty());
  CHECK(nothing.expired.empty());
  StallInspector only_error({nanoseconds(0), seconds(5)});
  only_error.started_waiting(at(0));
  CHECK(only_error.next_check() == at(5));
  CHECK(only_error.inspect(waiting, at(5), kMembers, kDescriptions).expired.size() == 1);
  StallInspector only_warning({seconds(5), nanoseconds(0)});
  const auto verdict = only_warning.inspect(waiting, at(1e6), kMembers, kDescriptions);
  CHECK(verdict.warnings.size() == 1);
  CHECK(verdict.expired.empty());
}
