#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/bench/mpi_library.h"
#include "collectives/base/status.h"

namespace allring::bench {

/// A gradient: float32 in memory that somebody else owns.
struct Tensor {
  float* data = nullptr;
  std::size_t count = 0;

  std::size_t bytes() const { return count * sizeof(float); }
};

/// A way to sum all gradients of a step over the ranks, in place. All ranks call the same.
class StepMethod {
 public:
  virtual ~StepMethod() = default;
  virtual const char* impl() const = 0;
  /// "runtime", "tensor by tensor", "buckets of 4 MiB"
  virtual std::string mode() const = 0;
  /// Returns when all tensors hold their sums.
  virtual Status run() = 0;
};

/// Submits every tensor to the runtime under its name, last first as a backward pass makes them,
/// and waits for all.
std::unique_ptr<StepMethod> runtime_step(std::vector<Tensor> tensors);

/// One MPI_Allreduce per tensor, last first.
std::unique_ptr<StepMethod> mpi_step(const MpiCollectives& mpi, std::vector<Tensor> tensors);

/// Copies tensors into a bucket, last first, until the next does not fit, sums the bucket by one
/// MPI_Allreduce and copies them back. A tensor that alone fills a bucket is summed where it is.
/// The bucket is made once.
std::unique_ptr<StepMethod> mpi_bucket_step(const MpiCollectives& mpi, std::vector<Tensor> tensors,
                                            std::size_t bucket_bytes);

/// Which tensors travel together, in the order of `tensors`: [first, last) pairs. One that has the
/// size of a bucket or more is alone.
struct Bucket {
  std::size_t first;
  std::size_t last;
  std::size_t count;
};
std::vector<Bucket> fill_buckets(std::span<const Tensor> tensors, std::size_t bucket_bytes);

}  // namespace allring::bench
