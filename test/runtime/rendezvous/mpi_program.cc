// A program that initialises and finalises MPI itself, and whose MPI goes on working while
// liballring_mpi.so uses it too.
#include <mpi.h>

#include <cstdlib>
#include <iostream>

#include "runtime/rendezvous/mpi_library.h"

namespace {

void require(bool condition, const std::string& what) {
  if (condition) return;
  std::cerr << what << std::endl;
  MPI_Abort(MPI_COMM_WORLD, 1);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto library = allring::MpiLibrary::load(std::getenv("ALLRING_MPI_LIBRARY"));
  require(library.ok(), library.status().to_string());
  for (int round = 0; round < 3; ++round) {
    const allring::Status opened = library->open(rank, size);
    require(opened.ok(), opened.to_string());
    const std::string words = "round " + std::to_string(round);
    const auto got =
        library->broadcast(rank == 0 ? words : "", allring::deadline_after(allring::seconds(30)));
    require(got.ok() && *got == words, got.status().to_string());
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    require(sum == size * (size - 1) / 2, "MPI's own sum is wrong");
  }
  require(!library->open(rank + 1, size).ok(), "a wrong rank was accepted");
  if (rank != 0) {
    // Rank 0 does not take part.
    const auto late = library->broadcast("", allring::deadline_after(allring::milliseconds(50)));
    require(late.status().code() == allring::StatusCode::kTimedOut, "no time-out");
  }
  MPI_Finalize();
  require(!library->open(rank, size).ok(), "MPI was used after its end");
  return 0;
}
