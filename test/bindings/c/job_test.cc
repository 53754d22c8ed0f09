// Jobs of several processes through the C interface.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "test/runtime/rendezvous/programs.h"

namespace allring {
namespace {

const std::string kRank = "test/bindings/c/rank";

using Environment = Program::Environment;

// Starts `size` ranks, and gives what each has printed and how it ended; `stopped` never does.
std::vector<Program::Outcome> run(int size, const std::string& mode, const Environment& more = {},
                                  int stopped = -1) {
  static int number = 0;
  const std::string job = std::to_string(getpid()) + "-" + std::to_string(number++);
  std::vector<Program> ranks;
  for (int rank = 0; rank < size; ++rank) {
    Environment environment = {
        {"RANK", std::to_string(rank)},       {"WORLD_SIZE", std::to_string(size)},
        {"LOCAL_RANK", std::to_string(rank)}, {"LOCAL_WORLD_SIZE", std::to_string(size)},
        {"MASTER_ADDR", "127.0.0.1"},         {"MASTER_PORT", "29500"},
        {"TORCHELASTIC_RUN_ID", job}};
    environment.insert(environment.end(), more.begin(), more.end());
    ranks.emplace_back(std::vector<std::string>{kRank, mode}, environment);
  }
  std::vector<Program::Outcome> outcomes;
  for (int rank = 0; rank < size; ++rank)
    outcomes.push_back(rank == stopped ? Program::Outcome() : ranks[rank].finish());
  return outcomes;
}

void check_all_well(const std::vector<Program::Outcome>& outcomes) {
  for (const Program::Outcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.output.find("done\n") != std::string::npos);
  }
}

// The number after `word` in what a rank has printed.
double number_after(const Program::Outcome& outcome, const std::string& word) {
  const std::size_t at = outcome.output.find(word);
  INFO(outcome.output);
  REQUIRE(at != std::string::npos);
  return std::atof(outcome.output.c_str() + at + word.size());
}

// All but the lost rank got ALLRING_PEER_LOST naming it, soon.
void check_lost(const std::vector<Program::Outcome>& outcomes, int lost, double within) {
  for (int rank = 0; rank < static_cast<int>(outcomes.size()); ++rank) {
    if (rank == lost) continue;
    const Program::Outcome& outcome = outcomes[rank];
    INFO("rank " << rank << ": " << outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.output.find("status 3 lost " + std::to_string(lost)) == 0);
    CHECK(outcome.output.find("rank " + std::to_string(lost) + " (host ") != std::string::npos);
    CHECK(outcome.output.find("in flight on this rank: ") != std::string::npos);
    CHECK(outcome.output.find("allreduce \"held\"") != std::string::npos);
    CHECK(number_after(outcome, "after ") < within);
  }
}

}  // namespace

TEST_CASE("ranks sum over shared memory and over sockets") {
  check_all_well(run(1, "train"));
  check_all_well(run(4, "train"));
  check_all_well(run(3, "train", {{"ALLRING_SHARED_MEMORY", "0"}}));
  check_all_well(run(2, "train", {{"ALLRING_LANES", "3"}}));
}

TEST_CASE("a deterministic job gives the same bits however it is run") {
  for (const int size : {2, 3, 5}) {
    const auto bits = [&](Environment more) {
      more.emplace_back("ALLRING_DETERMINISTIC", "1");
      const auto outcomes = run(size, "bits", more);
      check_all_well(outcomes);
      for (const Program::Outcome& outcome : outcomes) CHECK(outcome.output == outcomes[0].output);
      return outcomes[0].output;
    };
    const std::string expected = bits({});
    CHECK(bits({}) == expected);
    CHECK(bits({{"ALLRING_SHARED_MEMORY", "0"}}) == expected);
    CHECK(bits({{"ALLRING_FUSION_THRESHOLD", "0"}, {"ALLRING_LANES", "3"}}) == expected);
    CHECK(bits({{"ALLRING_ALGORITHM", "pairwise"}, {"ALLRING_SIMD", "scalar"}}) == expected);
    CHECK(bits({{"ALLRING_SHARED_MEMORY_SLOT_BYTES", "8192"}}) == expected);
  }
}

TEST_CASE("fusion's limits are the root's, whatever the others have") {
  check_all_well(run(1, "train", {{"ALLRING_FUSION_THRESHOLD", "0"}}));
  check_all_well(run(2, "train", {{"ALLRING_FUSION_THRESHOLD", "0"}}));
}

TEST_CASE("a rank killed amid allreduces is named to all others within two seconds") {
  for (const char* shared_memory : {"1", "0"}) {
    const auto outcomes = run(4, "killed", {{"ALLRING_SHARED_MEMORY", shared_memory}});
    CHECK(outcomes[2].exit_code == 128 + 9);
    check_lost(outcomes, 2, 2);
  }
  const auto outcomes = run(4, "root killed");
  CHECK(outcomes[0].exit_code == 128 + 9);
  check_lost(outcomes, 0, 2);
}

TEST_CASE("a rank that goes without a word is lost, too") {
  check_lost(run(3, "exits without a word"), 1, 2);
}

TEST_CASE("a frozen rank is lost once it has been silent for too long") {
  check_lost(run(3, "frozen", {{"ALLRING_HEARTBEAT_TIMEOUT_SECONDS", "1"}}, 1), 1, 10);
}

TEST_CASE("a rank that leaves in order ends the others' collectives with that reason") {
  const auto outcomes = run(3, "leaves");
  CHECK(outcomes[1].output == "done\n");
  for (const int rank : {0, 2}) {
    INFO(outcomes[rank].output);
    CHECK(outcomes[rank].exit_code == 0);
    CHECK(outcomes[rank].output.find("status 5 lost -1") == 0);
    CHECK(outcomes[rank].output.find("has shut down in an orderly way") != std::string::npos);
  }
}

#ifndef __SANITIZE_ADDRESS__  // its leak check comes first, and takes what is in use for leaked
TEST_CASE("the library may be used while the program exits") { check_all_well(run(2, "exit")); }
#endif

TEST_CASE("init and shutdown fifty times leave nothing behind") {
  const auto outcomes = run(2, "again");
  check_all_well(outcomes);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what is freed
  // Allocators keep some; a leaked segment or stack would be thousands of pages.
  for (const Program::Outcome& outcome : outcomes) CHECK(number_after(outcome, "grew by ") < 1000);
#endif
}

TEST_CASE("idle ranks use no processor") {
  const auto outcomes = run(2, "idle");
  check_all_well(outcomes);
  for (const Program::Outcome& outcome : outcomes) CHECK(number_after(outcome, "used ") < 10);
}

}  // namespace allring
