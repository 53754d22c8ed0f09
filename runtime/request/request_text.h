#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/request/request.h"

namespace allring {

/// "[64,32]"; "[]" for a scalar.
std::string shape_text(std::span<const std::int64_t> shape);

/// allreduce "layer1.weight"
std::string tensor_text(const Request& request);

/// The first few of them and how many more, for messages: allreduce "a", broadcast "b" and 7 more.
std::string tensor_list_text(std::span<const std::string> tensors);

}  // namespace allring
