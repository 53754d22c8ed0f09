#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/request/request.h"

namespace allring {

/// A tensor on its way through a lane.
struct BatchTensor {
  Submission submission;
  std::vector<std::int64_t> sizes;  ///< of all ranks, see Response
  Completion completion;
  void* output = nullptr;  ///< the caller's or completion.allocated, once prepared
  std::size_t count = 0;   ///< elements of the input, once prepared

  const Request& request() const { return submission.request; }
  std::size_t bytes() const { return count * element_bytes(request().dtype); }
};

/// Tensors that one lane runs as one collective; several only for allreduces that are packed
/// together.
struct Batch {
  std::uint64_t number = 0;  ///< 0, 1, ... equal on all ranks
  std::vector<BatchTensor> tensors;
};

}  // namespace allring
