#pragma once

#include "runtime/strategy/strategy.h"

namespace allring {

/// Every rank waits for all others, and all go on with the same result: plain data parallelism. A
/// single tensor goes from its input to its output without a copy; several are packed into one
/// buffer, which costs a copy in and a copy out. The prescale is applied while packing, or, for
/// sums and averages of 16-bit floats, once at the end together with the postscale, in 32 bits.
class SynchronousAllreduce final : public Strategy {
 public:
  Status update(std::span<BatchTensor> batch, Communicator& communicator,
                Scratch& scratch) override;
};

}  // namespace allring
