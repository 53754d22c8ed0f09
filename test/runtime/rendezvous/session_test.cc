// Jobs of several processes that find each other as each starter's environment says.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/rendezvous/key_value.h"
#include "runtime/rendezvous/store_server.h"
#include "test/runtime/rendezvous/programs.h"

namespace allring {
namespace {

// Bazel runs tests in the root of their runfiles.
const std::string kMeet = "test/runtime/rendezvous/meet";

using Environment = Program::Environment;

// A number that no other test running now has.
std::string unique() {
  static int number = 0;
  return std::to_string(getpid()) + "-" + std::to_string(number++);
}

Environment torchrun(int rank, int size, const std::string& run) {
  return {{"RANK", std::to_string(rank)},       {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_RANK", std::to_string(rank)}, {"LOCAL_WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", "127.0.0.1"},         {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RUN_ID", run}};
}

Environment with(Environment environment, const Environment& more) {
  environment.insert(environment.end(), more.begin(), more.end());
  return environment;
}

Program start(const Environment& environment, const std::string& rounds = "1") {
  return Program({kMeet, rounds}, environment);
}

void finish_well(std::vector<Program>& ranks, const std::string& words) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const Program::Outcome outcome = ranks[rank].finish();
    INFO("rank " << rank << ": " << outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.output.find("rank " + std::to_string(rank) + " of " +
                              std::to_string(ranks.size()) + ", " + words) != std::string::npos);
  }
}

TEST_CASE("one rank needs nobody") {
  std::vector<Program> ranks;
  ranks.push_back(start({}, "3"));
  finish_well(ranks, "local 0 of 1, cross 0 of 1, started by no launcher");
}

TEST_CASE("torchrun's variables on one host, again and again") {
  std::vector<Program> ranks;
  const std::string run = unique();
  for (int rank = 0; rank < 3; ++rank) ranks.push_back(start(torchrun(rank, 3, run), "50"));
  for (int rank = 0; rank < 3; ++rank) {
    const Program::Outcome outcome = ranks[rank].finish();
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.output.find(
              "rank " + std::to_string(rank) + " of 3, local " + std::to_string(rank) +
              " of 3, cross 0 of 1, started by torchrun, shared memory") != std::string::npos);
  }
}

TEST_CASE("torchrun's variables with a host that is not known to be this one") {
  std::vector<Program> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    // A number is an address too, and not one that looks like the loopback.
    ranks.push_back(start({{"RANK", std::to_string(rank)},
                           {"WORLD_SIZE", "3"},
                           {"MASTER_ADDR", "2130706433"},
                           {"MASTER_PORT", std::to_string(30000 + getpid() % 20000)},
                           {"ALLRING_NETWORK_INTERFACES", "lo"}},
                          "20"));
  }
  for (int rank = 0; rank < 3; ++rank) {
    const Program::Outcome outcome = ranks[rank].finish();
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    // Local and cross ranks are derived from who shares a host.
    CHECK(outcome.output.find("local " + std::to_string(rank) + " of 3, cross 0 of 1") !=
          std::string::npos);
  }
}

// What hvdrun's agent does for its ranks.
struct Agent {
  MemoryKeyValueMap map;
  std::unique_ptr<StoreServer> server;
  int secret = -1;
  Environment environment;

  explicit Agent(const std::string& id = unique()) {
    const std::string words(32, '\7');
    secret = memfd_create("secret", MFD_CLOEXEC);
    REQUIRE(write(secret, words.data(), words.size()) == 32);
    auto listening = StoreServer::listen("unix:@allring-test-" + id, words, map);
    REQUIRE(listening.ok());
    server = std::move(listening).value();
    environment = {{"ALLRING_JOB_ID", id},
                   {"ALLRING_STORE", server->address()},
                   {"ALLRING_SINGLE_HOST", "1"},
                   {"ALLRING_SECRET_FILE",
                    "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(secret)}};
  }
  ~Agent() { close(secret); }

  Environment rank(int rank, int size) const {
    return with(environment, {{"ALLRING_RANK", std::to_string(rank)},
                              {"ALLRING_SIZE", std::to_string(size)},
                              {"ALLRING_LOCAL_RANK", std::to_string(rank)},
                              {"ALLRING_LOCAL_SIZE", std::to_string(size)},
                              {"ALLRING_CROSS_RANK", "0"},
                              {"ALLRING_CROSS_SIZE", "1"}});
  }
};

TEST_CASE("hvdrun's variables, 50 times in one store") {
  Agent agent;
  std::vector<Program> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.push_back(start(agent.rank(rank, 4), "50"));
  for (Program& rank : ranks) {
    const Program::Outcome outcome = rank.finish();
    INFO(outcome.output);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.output.find("started by hvdrun, shared memory") != std::string::npos);
  }
  // Of the meetings nothing but the last list is kept.
  std::string kept;
  agent.map.watch("peer/1", [&](std::string value) { kept = value; });
  CHECK(kept.empty());
}

TEST_CASE("two jobs of one name but different secrets do not mix") {
  std::vector<Program> first;
  std::vector<Program> second;
  const std::string run = unique();
  for (int rank = 0; rank < 2; ++rank) {
    first.push_back(start(with(torchrun(rank, 2, run), {{"ALLRING_SECRET", "one"}})));
    second.push_back(start(with(torchrun(rank, 2, run), {{"ALLRING_SECRET", "two"}})));
  }
  for (int rank = 0; rank < 2; ++rank) {
    for (Program* program : {&first[rank], &second[rank]}) {
      const Program::Outcome outcome = program->finish();
      INFO(outcome.output);
      CHECK(outcome.exit_code == 0);
    }
  }
}

TEST_CASE("all ranks name the one that did not come") {
  std::vector<Program> ranks;
  const std::string run = unique();
  for (int rank : {0, 2})
    ranks.push_back(start(with(torchrun(rank, 3, run), {{"ALLRING_START_TIMEOUT", "1"}})));
  for (Program& rank : ranks) {
    const Program::Outcome outcome = rank.finish();
    INFO(outcome.output);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.output.find("timed out: rank 1 of 3 did not join within 1 s (started by "
                              "torchrun)") != std::string::npos);
  }
}

TEST_CASE("ranks without a rank 0 say so") {
  Program lonely = start(with(torchrun(1, 2, unique()), {{"ALLRING_START_TIMEOUT", "0.3"}}));
  const Program::Outcome outcome = lonely.finish();
  INFO(outcome.output);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.output.find("rank 0") != std::string::npos);
}

TEST_CASE("settings that must be equal are compared") {
  const auto [name, value, others] = GENERATE(table<std::string, std::string, std::string>(
      {{"ALLRING_LANES", "2", "1"}, {"ALLRING_DETERMINISTIC", "0", "1"}}));
  std::vector<Program> ranks;
  const std::string run = unique();
  for (int rank = 0; rank < 3; ++rank)
    ranks.push_back(start(with(torchrun(rank, 3, run), {{name, rank == 1 ? value : others}})));
  for (Program& rank : ranks) {
    const Program::Outcome outcome = rank.finish();
    INFO(outcome.output);
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.output.find("mismatch: rank 1") != std::string::npos);
    CHECK(outcome.output.find("has " + name + "=" + value + ", rank 0 has " + name + "=" +
                              others) != std::string::npos);
  }
}

TEST_CASE("the cost model's parameters must be equal, wherever their file is") {
  const std::string folder = std::getenv("TEST_TMPDIR");
  const auto file = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  };
  const std::string base = file("base", "within_host.alpha_us 5\n");
  const std::string same = file("same", "# elsewhere\nwithin_host.alpha_us 5.0\n");
  const std::string other = file("other", "within_host.alpha_us 7\n");
  for (const bool equal : {true, false}) {
    std::vector<Program> ranks;
    const std::string run = unique();
    for (int rank = 0; rank < 2; ++rank)
      ranks.push_back(
          start(with(torchrun(rank, 2, run), {{"ALLRING_TUNING_FILE", rank == 0 ? base
                                                                      : equal   ? same
                                                                                : other}})));
    for (Program& rank : ranks) {
      const Program::Outcome outcome = rank.finish();
      INFO(outcome.output);
      CHECK(outcome.exit_code == (equal ? 0 : 1));
      CHECK((outcome.output.find("within_host.alpha_us=7, rank 0 has ALLRING_TUNING_FILE's "
                                 "within_host.alpha_us=5") != std::string::npos) == !equal);
    }
  }
}

}  // namespace
}  // namespace allring
