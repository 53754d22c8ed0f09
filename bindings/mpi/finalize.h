#pragma once

/// Once this process has initialised MPI: finalises it when the process exits with status 0.
///
/// A process that failed leaves MPI without a word: mpirun then ends the others, which could wait
/// for it in MPI_Finalize for ever.
void allring_mpi_finalize_at_exit();
