#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/algorithm/algorithm.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"

namespace allring {

/// What one rank says of one tensor: all that ranks must agree on, and nothing local. Travels in
/// the wire codec and is what the response cache compares.
struct Request {
  CollectiveKind kind = CollectiveKind::kAllreduce;
  std::string name;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  double prescale = 1.0;
  double postscale = 1.0;
  Rank root = 0;
  std::int32_t device = -1;  ///< -1: host memory
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> splits;  ///< alltoall: rows for each rank
  std::string group;                 ///< of a grouped call: its name; empty otherwise
  std::int32_t group_size = 0;       ///< members of that group
  /// The name comes from a counter and will not be seen again: not worth remembering.
  bool unnamed = false;

  bool operator==(const Request&) const = default;
};

/// Where the bytes of a request lie on this rank. The caller keeps them alive until done.
struct TensorView {
  const void* input = nullptr;
  void* output = nullptr;  ///< null: the executor allocates what it finds to be needed
};

/// The result of one tensor, handed to Submission::done.
struct Completion {
  Status status;
  std::vector<std::int64_t> shape;            ///< of the output
  std::vector<std::int64_t> received_splits;  ///< alltoall
  /// Output memory, where TensorView::output was null.
  std::shared_ptr<std::byte[]> allocated;
};

/// A request with its memory and its callback: what a caller thread gives to the runtime.
struct Submission {
  Request request;
  TensorView view;
  /// Called exactly once, from a lane or the coordinator thread; must not block.
  std::function<void(Completion)> done;
};

}  // namespace allring
