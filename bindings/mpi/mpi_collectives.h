#pragma once

#include <cstddef>

// What liballring_mpi.so exports for comparisons: MPI's own collectives, called as a program that
// is linked with MPI would call them. All calls on one thread.
extern "C" {

/// Initialises MPI without support for threads, which costs MPI nothing, unless it is initialised.
/// Collective. `library` gets MPI's name and version. @return 0, or nonzero with a text in `error`.
int allring_mpi_collectives_open(int* rank, int* size, char* library, std::size_t library_bytes,
                                 char* error, std::size_t error_bytes);

/// One collective over all ranks; blocks as MPI does. kind, dtype and op are those of
/// bindings/c/allring.h. `count` elements are those of the larger side: allgather's output,
/// reduce_scatter's and alltoall's input. Equal pointers mean MPI_IN_PLACE (allreduce); a broadcast
/// uses `output` only. @return 0, or nonzero with a text, also where MPI has no such type or op.
int allring_mpi_collective(int kind, const void* input, void* output, std::size_t count, int dtype,
                           int op, int root, char* error, std::size_t error_bytes);
}
