#pragma once

#include "collectives/base/status.h"
#include "collectives/kernels/reduce.h"
#include "runtime/request/request.h"

namespace allring {

/// How the scales of a reducing request are applied.
struct Scaling {
  Reduction reduction;    ///< with the postscale, and the prescale where that is the same
  double prescale = 1.0;  ///< still to be applied to each input

  /// Sums of 16-bit floats accumulate in 32 bits, so that scaling the sum once is better and
  /// cheaper than rounding each scaled input; for all others the prescale comes first, since it may
  /// be what keeps the sum in range.
  static Result<Scaling> of(const Request& request, int size);
};

}  // namespace allring
