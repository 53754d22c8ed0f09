// MPI links, and one rank without mpirun works.

#include <mpi.h>

#include <catch2/catch.hpp>

TEST_CASE("one MPI rank sums with itself") {
  int provided = 0;
  REQUIRE(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
  int in = 3;
  int out = 0;
  CHECK(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(out == 3);
  CHECK(MPI_Finalize() == MPI_SUCCESS);
}
