#include "runtime/execution/scaling.h"

namespace allring {

Result<Scaling> Scaling::of(const Request& request, int size) {
  const bool adds = request.op == ReduceOp::kSum || request.op == ReduceOp::kAverage;
  const bool fold = is_half(request.dtype) && adds;
  Scaling scaling;
  scaling.prescale = fold ? 1.0 : request.prescale;
  const double postscale = request.postscale * (fold ? request.prescale : 1.0);
  ALLRING_ASSIGN_OR_RETURN(scaling.reduction,
                           Reduction::resolve(request.dtype, request.op, size, postscale));
  return scaling;
}

}  // namespace allring
