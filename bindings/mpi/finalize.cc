#include "bindings/mpi/finalize.h"

#include <mpi.h>
#include <stdlib.h>

namespace {

void finalize(int exit_status, void*) {
  int finalized = 0;
  if (exit_status == 0 && MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized) MPI_Finalize();
}

}  // namespace

void allring_mpi_finalize_at_exit() { on_exit(finalize, nullptr); }
