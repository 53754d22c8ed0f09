#include "bindings/mpi/mpi_collectives.h"

#include <mpi.h>

#include <climits>
#include <cstdio>

#include "bindings/c/allring.h"
#include "bindings/mpi/finalize.h"

namespace {

// As MPI's own state, one per process.
MPI_Comm world = MPI_COMM_NULL;
int world_size = 0;

int fail(int code, const char* what, char* error, std::size_t error_bytes) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  std::snprintf(error, error_bytes, "%s%s%s", what, length > 0 ? ": " : "", text);
  return 1;
}

MPI_Datatype type_of(int dtype) {
  switch (dtype) {
    case ALLRING_UINT8:
      return MPI_UINT8_T;
    case ALLRING_INT8:
      return MPI_INT8_T;
    case ALLRING_UINT16:
      return MPI_UINT16_T;
    case ALLRING_INT16:
      return MPI_INT16_T;
    case ALLRING_INT32:
      return MPI_INT32_T;
    case ALLRING_INT64:
      return MPI_INT64_T;
    case ALLRING_FLOAT32:
      return MPI_FLOAT;
    case ALLRING_FLOAT64:
      return MPI_DOUBLE;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Op op_of(int op) {
  switch (op) {
    case ALLRING_SUM:
      return MPI_SUM;
    case ALLRING_MIN:
      return MPI_MIN;
    case ALLRING_MAX:
      return MPI_MAX;
    case ALLRING_PRODUCT:
      return MPI_PROD;
    default:
      return MPI_OP_NULL;
  }
}

}  // namespace

int allring_mpi_collectives_open(int* rank, int* size, char* library, std::size_t library_bytes,
                                 char* error, std::size_t error_bytes) {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized) return fail(MPI_SUCCESS, "MPI is finalised", error, error_bytes);
  if (!initialized) {
    int provided = MPI_THREAD_SINGLE;
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    if (code != MPI_SUCCESS) return fail(code, "MPI_Init_thread", error, error_bytes);
    allring_mpi_finalize_at_exit();
  }
  if (world == MPI_COMM_NULL) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_dup(MPI_COMM_WORLD, &made);
    if (code != MPI_SUCCESS) return fail(code, "MPI_Comm_dup", error, error_bytes);
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    world = made;
  }
  MPI_Comm_rank(world, rank);
  MPI_Comm_size(world, size);
  world_size = *size;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::snprintf(library, library_bytes, "%s", version);
  return 0;
}

int allring_mpi_collective(int kind, const void* input, void* output, std::size_t count, int dtype,
                           int op, int root, char* error, std::size_t error_bytes) {
  if (kind == ALLRING_KIND_BARRIER) {
    const int code = MPI_Barrier(world);
    return code == MPI_SUCCESS ? 0 : fail(code, "MPI_Barrier", error, error_bytes);
  }
  const MPI_Datatype type = type_of(dtype);
  if (type == MPI_DATATYPE_NULL)
    return fail(MPI_SUCCESS, "MPI has no such element type", error, error_bytes);
  if (count > INT_MAX) return fail(MPI_SUCCESS, "MPI counts in int", error, error_bytes);
  const int all = static_cast<int>(count);
  const int part = all / world_size;
  const void* from = input == output ? MPI_IN_PLACE : input;
  const char* name = "";
  int code = MPI_SUCCESS;
  switch (kind) {
    case ALLRING_KIND_ALLREDUCE:
    case ALLRING_KIND_REDUCE_SCATTER: {
      const MPI_Op reduction = op_of(op);
      if (reduction == MPI_OP_NULL)
        return fail(MPI_SUCCESS, "MPI has no such operation", error, error_bytes);
      if (kind == ALLRING_KIND_ALLREDUCE) {
        name = "MPI_Allreduce";
        code = MPI_Allreduce(from, output, all, type, reduction, world);
      } else {
        name = "MPI_Reduce_scatter_block";
        code = MPI_Reduce_scatter_block(input, output, part, type, reduction, world);
      }
      break;
    }
    case ALLRING_KIND_ALLGATHER:
      name = "MPI_Allgather";
      code = MPI_Allgather(input, part, type, output, part, type, world);
      break;
    case ALLRING_KIND_BROADCAST:
      name = "MPI_Bcast";
      code = MPI_Bcast(output, all, type, root, world);
      break;
    case ALLRING_KIND_ALLTOALL:
      name = "MPI_Alltoall";
      code = MPI_Alltoall(input, part, type, output, part, type, world);
      break;
    default:
      return fail(MPI_SUCCESS, "no such collective", error, error_bytes);
  }
  return code == MPI_SUCCESS ? 0 : fail(code, name, error, error_bytes);
}
