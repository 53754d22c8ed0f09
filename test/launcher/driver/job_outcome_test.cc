#include "launcher/driver/job_outcome.h"

#include <signal.h>

#include <catch2/catch.hpp>

namespace allring {
namespace {

int exited(int code) { return code << 8; }  // as waitpid() encodes it
int killed(int signal) { return signal; }
TimePoint at(int ms) { return TimePoint(milliseconds(ms)); }
std::vector<std::string> no_lines(int) { return {}; }

JobOutcome job() { return JobOutcome({"a", "a", "b", "b"}); }

TEST_CASE("all well") {
  JobOutcome outcome = job();
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(!outcome.all_ended());
    outcome.rank_exited(rank, exited(0), false, at(rank));
  }
  CHECK(outcome.all_ended());
  CHECK(!outcome.failed());
  CHECK(outcome.exit_code() == 0);
  CHECK(outcome.account(no_lines) == "");
}

TEST_CASE("the first failure is the cause") {
  JobOutcome outcome = job();
  outcome.rank_exited(1, exited(0), false, at(0));
  outcome.rank_exited(3, exited(42), false, at(1));
  outcome.rank_exited(0, killed(SIGSEGV), false, at(2));
  outcome.rank_exited(2, killed(SIGTERM), true, at(3000));
  CHECK(outcome.exit_code() == 42);
  CHECK(outcome.account([](int rank) { return std::vector<std::string>{std::to_string(rank)}; }) ==
        "hvdrun: rank 3 on host b failed first: exit code 42\n"
        "hvdrun: its last lines were:\n"
        "    3\n"
        "hvdrun: rank 0: killed by signal 11 (Segmentation fault)\n"
        "hvdrun: rank 1: exit code 0\n"
        "hvdrun: rank 2: killed by signal 15 (Terminated) after being asked to end\n");
}

TEST_CASE("a signal whose news comes late is the cause all the same") {
  JobOutcome outcome = job();
  outcome.rank_exited(0, exited(1), false, at(0));
  CHECK(outcome.exit_code() == 1);
  outcome.rank_exited(2, killed(SIGKILL), false, at(300));
  CHECK(outcome.exit_code() == 137);
}

TEST_CASE("but not if it comes much later, or by our own hand, or tells of an error noticed") {
  JobOutcome late = job();
  late.rank_exited(0, exited(1), false, at(0));
  late.rank_exited(2, killed(SIGKILL), false, at(600));
  CHECK(late.exit_code() == 1);
  JobOutcome ours = job();
  ours.rank_exited(0, exited(1), false, at(0));
  ours.rank_exited(2, killed(SIGKILL), true, at(100));
  CHECK(ours.exit_code() == 1);
  JobOutcome abort = job();
  abort.rank_exited(0, exited(1), false, at(0));
  abort.rank_exited(2, killed(SIGABRT), false, at(100));
  CHECK(abort.exit_code() == 1);
}

TEST_CASE("a lost host") {
  JobOutcome outcome = job();
  outcome.rank_exited(2, exited(0), false, at(0));
  outcome.host_lost("b", "silent", 1, at(5));
  outcome.rank_exited(3, exited(9), false, at(6));  // too late
  outcome.rank_exited(0, killed(SIGKILL), false, at(7));
  outcome.rank_exited(1, exited(1), false, at(8));
  CHECK(outcome.all_ended());
  CHECK(outcome.exit_code() == 1);
  CHECK_THAT(
      outcome.account(no_lines),
      Catch::StartsWith("hvdrun: rank 3 on host b failed first: lost with its host: silent"));
}

TEST_CASE("ends that we asked for are no failures of the job") {
  JobOutcome outcome = job();
  for (int rank = 0; rank < 4; ++rank) outcome.rank_exited(rank, killed(SIGINT), true, at(rank));
  CHECK(!outcome.failed());
  CHECK(outcome.exit_code() == 0);
}

TEST_CASE("many ranks that fared the same take one line") {
  JobOutcome outcome(std::vector<std::string>(64, "a"));
  outcome.rank_exited(0, exited(3), false, at(0));
  for (int rank = 1; rank < 64; ++rank) outcome.rank_exited(rank, killed(SIGTERM), true, at(1));
  CHECK_THAT(outcome.account(no_lines), Catch::Contains("ranks 1 to 63: killed"));
}

}  // namespace
}  // namespace allring
