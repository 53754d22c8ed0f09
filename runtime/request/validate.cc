#include "runtime/request/validate.h"

#include <cmath>
#include <limits>
#include <string>

#include "runtime/request/request_text.h"
#include "runtime/request/wire.h"

namespace allring {

namespace {

Status wrong(const Request& request, const std::string& what) {
  return Status::invalid_argument(tensor_text(request) + ": " + what);
}

Status check_rows(const Request& request) {
  if (request.shape.empty())
    return wrong(request, "a scalar has no first dimension to work along; reshape it to [1]");
  return {};
}

Status check_splits(const Request& request, int size) {
  if (static_cast<int>(request.splits.size()) != size)
    return wrong(request, "has " + std::to_string(request.splits.size()) + " splits, expected " +
                              std::to_string(size) + ", one for each rank");
  std::int64_t total = 0;
  for (std::int64_t rows : request.splits) {
    if (rows < 0) return wrong(request, "splits must not be negative, got " + std::to_string(rows));
    if (rows > request.shape[0] - total)
      return wrong(request, "splits " + shape_text(request.splits) +
                                " ask for more rows than the " + std::to_string(request.shape[0]) +
                                " of the tensor");
    total += rows;
  }
  return {};
}

Status check_reduction(const Request& request) {
  if (request.op == ReduceOp::kAdasum)
    return Status::unsupported(tensor_text(request) +
                               ": this build has no Adasum; use sum or average");
  if (request.dtype == DataType::kBool && request.op == ReduceOp::kAverage)
    return wrong(request, "bool has no average; use min (and), max (or), or another dtype");
  if (request.kind == CollectiveKind::kReduceScatter && request.op != ReduceOp::kSum &&
      request.op != ReduceOp::kAverage)
    return wrong(request, "reduce_scatter knows sum and average, got " +
                              std::string(reduce_op_name(request.op)));
  if (!std::isfinite(request.prescale) || !std::isfinite(request.postscale))
    return wrong(request, "scale factors must be finite numbers");
  return {};
}

}  // namespace

Result<std::int64_t> element_count(std::span<const std::int64_t> shape, DataType dtype) {
  // Bytes must fit a signed 64-bit number, and so must the product without the empty dimensions, so
  // that no later multiplication of some extents overflows.
  const auto limit =
      std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(element_bytes(dtype));
  std::int64_t product = 1;
  bool empty = false;
  for (std::int64_t extent : shape) {
    if (extent < 0)
      return Status::invalid_argument("shape " + shape_text(shape) + " has a negative extent");
    if (extent == 0) {
      empty = true;
    } else if (product > limit / extent) {
      return Status::invalid_argument("shape " + shape_text(shape) + " of " +
                                      std::string(data_type_name(dtype)) +
                                      " has more bytes than memory can have");
    } else {
      product *= extent;
    }
  }
  return empty ? 0 : product;
}

std::int64_t row_elements(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

Status validate(const Request& request, int size) {
  if (request.name.empty()) return Status::invalid_argument("a tensor needs a name");
  if (request.name.size() > kMaxNameBytes || request.group.size() > kMaxNameBytes)
    return Status::invalid_argument("a name of " + std::to_string(request.name.size()) +
                                    " bytes is too long; the limit is " +
                                    std::to_string(kMaxNameBytes));
  if (request.shape.size() > kMaxDimensions)
    return wrong(request, std::to_string(request.shape.size()) + " dimensions, the limit is " +
                              std::to_string(kMaxDimensions));
  if (request.device != -1)
    return Status::unsupported(tensor_text(request) + ": lies on device " +
                               std::to_string(request.device) +
                               ", this build moves host memory only; copy it to the host first");
  if (auto count = element_count(request.shape, request.dtype); !count.ok())
    return wrong(request, count.status().message());
  switch (request.kind) {
    case CollectiveKind::kAllreduce:
      return check_reduction(request);
    case CollectiveKind::kReduceScatter:
      ALLRING_RETURN_IF_ERROR(check_rows(request));
      return check_reduction(request);
    case CollectiveKind::kAllgather:
      return check_rows(request);
    case CollectiveKind::kBroadcast:
      if (request.root < 0 || request.root >= size)
        return wrong(request, "root " + std::to_string(request.root) + " is not among the " +
                                  std::to_string(size) + " ranks");
      return {};
    case CollectiveKind::kAlltoall:
      ALLRING_RETURN_IF_ERROR(check_rows(request));
      return check_splits(request, size);
    case CollectiveKind::kBarrier:
      return {};
  }
  return wrong(request, "is of no known kind");
}

}  // namespace allring
