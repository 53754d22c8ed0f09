#pragma once

#include <cstdint>
#include <span>

#include "collectives/base/status.h"
#include "runtime/request/request.h"

namespace allring {

/// The product of the extents.
/// @return kInvalidArgument for a negative extent, or if that many elements of this type have no
///         size in bytes.
Result<std::int64_t> element_count(std::span<const std::int64_t> shape, DataType dtype);

/// Elements of one row: the product of all extents but the first. REQUIRES: validate() passed.
std::int64_t row_elements(std::span<const std::int64_t> shape);

/// Whether a request makes sense by itself in a group of `size` ranks: what a caller can be told at
/// once, without asking the other ranks.
/// @return kInvalidArgument or kUnsupported, naming the tensor, what is wrong and what would be
/// right.
Status validate(const Request& request, int size);

}  // namespace allring
