// Jobs that Open MPI's mpirun starts.
#include <catch2/catch.hpp>
#include <string>

#include "test/runtime/rendezvous/programs.h"

namespace allring {
namespace {

// Bazel runs tests in the root of their runfiles.
const std::string kMeet = "test/runtime/rendezvous/meet";

Program::Outcome mpirun(const std::string& ranks, std::vector<std::string> command) {
  std::vector<std::string> arguments = {"mpirun", "-np", ranks};
  arguments.insert(arguments.end(), command.begin(), command.end());
  return Program(arguments, {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                             {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                             {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                             {"OMPI_MCA_mpi_yield_when_idle", "1"},
                             {"ALLRING_MPI_LIBRARY", "bindings/mpi/liballring_mpi.so"}})
      .finish();
}

void check_all(const Program::Outcome& outcome, int size, const std::string& words) {
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  for (int rank = 0; rank < size; ++rank)
    CHECK(outcome.output.find("rank " + std::to_string(rank) + " of " + std::to_string(size) +
                              ", local " + std::to_string(rank) + " of " + std::to_string(size) +
                              words) != std::string::npos);
}

TEST_CASE("on one host") {
  check_all(mpirun("2", {kMeet, "10"}), 2, ", cross 0 of 1, started by Open MPI");
  check_all(mpirun("4", {kMeet, "3"}), 4, ", cross 0 of 1, started by Open MPI");
}

TEST_CASE("through MPI, when the ranks believe to be on different hosts") {
  const Program::Outcome outcome =
      mpirun("3", {"env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "OMPI_COMM_WORLD_LOCAL_RANK=0",
                   "ALLRING_NETWORK_INTERFACES=lo", kMeet, "5"});
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
  for (int rank = 0; rank < 3; ++rank)
    CHECK(outcome.output.find("rank " + std::to_string(rank) + " of 3, local 0 of 1") !=
          std::string::npos);
}

TEST_CASE("a program that uses MPI itself") {
  const Program::Outcome outcome =
      mpirun("2", {"env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "OMPI_COMM_WORLD_LOCAL_RANK=0",
                   "ALLRING_NETWORK_INTERFACES=lo", "test/runtime/rendezvous/mpi_program"});
  INFO(outcome.output);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("without the library, the error says what to do") {
  const Program::Outcome outcome =
      mpirun("2", {"env", "OMPI_COMM_WORLD_LOCAL_SIZE=1", "OMPI_COMM_WORLD_LOCAL_RANK=0",
                   "ALLRING_MPI_LIBRARY=/nowhere/liballring_mpi.so", kMeet});
  INFO(outcome.output);
  CHECK(outcome.exit_code != 0);
  CHECK(outcome.output.find("/nowhere/liballring_mpi.so") != std::string::npos);
  CHECK(outcome.output.find("ALLRING_MPI_LIBRARY") != std::string::npos);
}

}  // namespace
}  // namespace allring
