#pragma once

#include <cstddef>

// What liballring_mpi.so exports: as little of MPI as ranks need to find each other. It is opened
// only in jobs that MPI started, so that liballring.so itself needs no MPI.
extern "C" {

/// Initialises MPI unless the program has, and makes a communicator of our own. Collective: blocks
/// until all ranks have called it, the first time. If it initialised MPI it also finalises it, when
/// the process exits with status 0. @return 0, or nonzero with a text in `error`.
int allring_mpi_open(int* rank, int* size, char* error, std::size_t error_bytes);

/// Gives all ranks rank 0's `bytes`. Collective: blocks until this rank has them, `timeout_seconds`
/// at most. @return 0; 1 when time is over, after which no further call works; 2 with a text.
int allring_mpi_broadcast(void* bytes, std::size_t count, double timeout_seconds, char* error,
                          std::size_t error_bytes);
}
