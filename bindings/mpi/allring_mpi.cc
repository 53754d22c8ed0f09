// How ranks meet through MPI: see runtime/rendezvous/mpi_functions.h.
#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>

#include "bindings/mpi/finalize.h"
#include "runtime/rendezvous/mpi_functions.h"

namespace {

// The state of this process within MPI, which is one per process by MPI's own design.
MPI_Comm communicator = MPI_COMM_NULL;

// Between two looks at an operation that MPI only advances while somebody looks.
constexpr timespec kShortestPause{0, 20'000};
constexpr long kLongestPauseNanoseconds = 5'000'000;

int fail(int code, const char* what, char* error, std::size_t error_bytes) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  std::snprintf(error, error_bytes, "%s%s%s", what, length > 0 ? ": " : "", text);
  return 2;
}

int initialize(char* error, std::size_t error_bytes) {
  int finalized = 0;
  int initialized = 0;
  MPI_Finalized(&finalized);
  MPI_Initialized(&initialized);
  if (finalized) return fail(MPI_SUCCESS, "the program has finalised MPI", error, error_bytes);
  if (!initialized) {
    int provided = MPI_THREAD_SINGLE;
    // The program may use MPI later, from any thread.
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    if (code != MPI_SUCCESS) return fail(code, "MPI_Init_thread", error, error_bytes);
    allring_mpi_finalize_at_exit();
    return 0;
  }
  int provided = MPI_THREAD_SINGLE;
  int main_thread = 0;
  MPI_Query_thread(&provided);
  MPI_Is_thread_main(&main_thread);
  if (provided < MPI_THREAD_SERIALIZED && !main_thread)
    return fail(MPI_SUCCESS,
                "the program initialised MPI without threads: call init() in the thread that "
                "initialised MPI, or initialise it with MPI_THREAD_MULTIPLE",
                error, error_bytes);
  return 0;
}

}  // namespace

int allring_mpi_open(int* rank, int* size, char* error, std::size_t error_bytes) {
  if (const int failed = initialize(error, error_bytes)) return failed;
  if (communicator == MPI_COMM_NULL) {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_dup(MPI_COMM_WORLD, &made);
    if (code != MPI_SUCCESS) return fail(code, "MPI_Comm_dup", error, error_bytes);
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    communicator = made;
  }
  MPI_Comm_rank(communicator, rank);
  MPI_Comm_size(communicator, size);
  return 0;
}

int allring_mpi_broadcast(void* bytes, std::size_t count, double timeout_seconds, char* error,
                          std::size_t error_bytes) {
  if (communicator == MPI_COMM_NULL || count > INT_MAX)
    return fail(MPI_SUCCESS, "not open, or the former broadcast timed out", error, error_bytes);
  // Not the caller's memory: MPI may still write there after a time-out.
  auto block = std::make_unique<std::byte[]>(count);
  std::memcpy(block.get(), bytes, count);
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_Ibcast(block.get(), static_cast<int>(count), MPI_BYTE, 0, communicator, &request);
  if (code != MPI_SUCCESS) return fail(code, "MPI_Ibcast", error, error_bytes);
  const double end = MPI_Wtime() + timeout_seconds;
  timespec pause = kShortestPause;
  for (;;) {
    int done = 0;
    code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return fail(code, "MPI_Ibcast", error, error_bytes);
    if (done) {
      std::memcpy(bytes, block.get(), count);
      return 0;
    }
    if (MPI_Wtime() > end) break;
    nanosleep(&pause, nullptr);
    pause.tv_nsec = std::min(pause.tv_nsec * 2, kLongestPauseNanoseconds);
  }
  // MPI cannot cancel a collective: its communicator is of no further use.
  communicator = MPI_COMM_NULL;
  (void)block.release();
  return 1;
}
