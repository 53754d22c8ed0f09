#pragma once

#include "collectives/base/status.h"

namespace allring {

/// Keeps the failure for allring_last_error() of this thread and returns its code, or returns 0.
int record(const Status& status) noexcept;

/// Never null.
const char* recorded_message() noexcept;
/// The lost rank of the recorded failure, or -1.
int recorded_rank() noexcept;

}  // namespace allring
