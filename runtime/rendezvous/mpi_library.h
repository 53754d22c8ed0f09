#pragma once

#include <string>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "runtime/rendezvous/mpi_functions.h"

namespace allring {

/// The functions of liballring_mpi.so. Stays loaded until the process exits. All calls on one
/// thread, which is the main thread if the program initialised MPI without threads.
class MpiLibrary {
 public:
  /// @param path empty: liballring_mpi.so beside the library or program that this code is in.
  /// @return kUnsupported saying which file was tried and what the loader said.
  static Result<MpiLibrary> load(const std::string& path);

  /// Blocks until all ranks have called it. @return kInvalidArgument if MPI's rank and size are not
  /// those given; kUnsupported with MPI's words.
  Status open(int rank, int size);

  /// Every rank gets rank 0's bytes, at most 8000. @return kTimedOut, kUnsupported with MPI's
  /// words.
  Result<std::string> broadcast(std::string bytes, Deadline deadline);

 private:
  decltype(&allring_mpi_open) open_ = nullptr;
  decltype(&allring_mpi_broadcast) broadcast_ = nullptr;
  std::string path_;
};

}  // namespace allring
