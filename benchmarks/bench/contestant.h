#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/bench/memory.h"
#include "collectives/algorithm/algorithm.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"

namespace allring::bench {

/// One collective to be called over and over: equal parts on all ranks. `count` is of the larger
/// side: allgather's output, reduce_scatter's and alltoall's input.
struct Call {
  CollectiveKind kind = CollectiveKind::kAllreduce;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Rank root = 0;
  std::size_t count = 0;
  const void* input = nullptr;
  void* output = nullptr;
};

/// An implementation of collectives that can be measured. All ranks call the same methods in the
/// same order.
class Contestant {
 public:
  virtual ~Contestant() = default;
  /// "allring", "openmpi"
  virtual const char* impl() const { return "allring"; }
  /// For the head of the table: version and settings of a peer.
  virtual std::string description() const { return ""; }
  virtual const char* layer() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int hosts() const = 0;
  /// Runs it and returns when this rank's output is complete.
  /// Where the library allocates the output, nothing is written to call.output.
  virtual Status run(const Call& call) = 0;
  /// As run(), and the result is in call.output.
  virtual Status run_into_output(const Call& call) { return run(call); }
  /// Name of the row that ran the latest call, or "" where it can't be told.
  virtual std::string_view algorithm(const Call& call) = 0;
  virtual Status barrier() = 0;
  /// Zeroed memory of a kind, "private" or "arena" (which ends before this does).
  /// @return kUnsupported or kOutOfMemory where there is no arena.
  Result<Memory> allocate(const std::string& buffers, std::size_t bytes);
  /// values[i] becomes the largest of all ranks' values[i].
  Status max_over_ranks(std::vector<double>& values);

 protected:
  virtual Result<Memory> allocate_in_arena(std::size_t bytes);
};

/// The negotiated path of the C interface, as a framework uses it.
Result<std::unique_ptr<Contestant>> make_runtime_contestant();
/// A communicator on one lane, without negotiation.
Result<std::unique_ptr<Contestant>> make_core_contestant();
/// Open MPI's own collectives, on the ranks that mpirun started. To be made before ours, so that
/// MPI is initialised without support for threads.
Result<std::unique_ptr<Contestant>> make_mpi_contestant();

}  // namespace allring::bench
