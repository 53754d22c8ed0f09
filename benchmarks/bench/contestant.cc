#include "benchmarks/bench/contestant.h"

#include <algorithm>

namespace allring::bench {

Result<Memory> Contestant::allocate(const std::string& buffers, std::size_t bytes) {
  if (buffers == "arena") return allocate_in_arena(std::max<std::size_t>(bytes, 1));
  return Memory(bytes);
}

Result<Memory> Contestant::allocate_in_arena(std::size_t) {
  return Status::unsupported(std::string(impl()) + " has no arena");
}

Status Contestant::max_over_ranks(std::vector<double>& values) {
  Call call;
  call.dtype = DataType::kFloat64;
  call.op = ReduceOp::kMax;
  call.count = values.size();
  call.input = call.output = values.data();
  return run(call);
}

}  // namespace allring::bench
