#pragma once

#include <string>

#include "bindings/mpi/mpi_collectives.h"
#include "collectives/base/status.h"

namespace allring::bench {

/// MPI's collectives, through liballring_mpi.so, so that hvdbench itself needs no MPI. Stays loaded
/// until the process exits.
class MpiCollectives {
 public:
  /// Loads the plugin and initialises MPI; collective over all ranks that mpirun started.
  /// @return kInvalidArgument where mpirun started nobody; kUnsupported with the loader's or MPI's
  ///         words.
  static Result<MpiCollectives> open();

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// "Open MPI v4.1.4"
  const std::string& library() const { return library_; }

  /// allring_mpi_collective(). @return kUnsupported with MPI's words.
  Status run(int kind, const void* input, void* output, std::size_t count, int dtype, int op,
             int root) const;

 private:
  decltype(&allring_mpi_collective) collective_ = nullptr;
  int rank_ = 0;
  int size_ = 1;
  std::string library_;
};

/// The settings of the environment by which Open MPI was tuned, "NAME=value NAME=value", or "".
std::string mpi_tuning();

/// Places where liballring_mpi.so may lie, best first: $ALLRING_MPI_LIBRARY alone if it is set,
/// else beside the program, in the build tree, in the Python environment that the wheel was
/// installed in. @param program path of hvdbench
std::string find_mpi_plugin(const std::string& program);

}  // namespace allring::bench
