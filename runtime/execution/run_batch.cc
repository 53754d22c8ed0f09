#include "runtime/execution/run_batch.h"

#include <cstring>
#include <limits>

#include "runtime/execution/scaling.h"
#include "runtime/request/request_text.h"
#include "runtime/request/validate.h"

namespace allring {

namespace {

// Rows that each rank keeps of a reduce_scatter: the first ones get the remainder.
std::int64_t kept_rows(std::int64_t rows, int size, Rank rank) {
  return rows / size + (rank < rows % size ? 1 : 0);
}

// The sizes of one rank's column of an alltoall: what everybody sends to it.
std::vector<std::int64_t> column(const std::vector<std::int64_t>& sizes, int size, Rank rank) {
  std::vector<std::int64_t> rows;
  for (int from = 0; from < size; ++from)
    rows.push_back(sizes[static_cast<std::size_t>(from) * size + rank]);
  return rows;
}

// Saturates: what is too large is then refused as a shape. Rows without elements may be that many.
std::int64_t total(const std::vector<std::int64_t>& rows) {
  std::int64_t sum = 0;
  for (std::int64_t r : rows)
    if (__builtin_add_overflow(sum, r, &sum)) return std::numeric_limits<std::int64_t>::max();
  return sum;
}

// Elements of so many rows each.
std::vector<std::size_t> elements(const std::vector<std::int64_t>& rows, const Request& request) {
  const std::int64_t row = row_elements(request.shape);
  std::vector<std::size_t> counts;
  for (std::int64_t r : rows) counts.push_back(static_cast<std::size_t>(r * row));
  return counts;
}

std::vector<std::int64_t> output_shape(const BatchTensor& tensor, int size, Rank rank) {
  std::vector<std::int64_t> shape = tensor.request().shape;
  switch (tensor.request().kind) {
    case CollectiveKind::kAllgather:
      shape[0] = total(tensor.sizes);
      break;
    case CollectiveKind::kAlltoall:
      shape[0] = total(column(tensor.sizes, size, rank));
      break;
    case CollectiveKind::kReduceScatter:
      shape[0] = kept_rows(shape[0], size, rank);
      break;
    default:
      break;
  }
  return shape;
}

Status prepare(BatchTensor& tensor, int size, Rank rank) {
  const Request& request = tensor.request();
  if (request.kind == CollectiveKind::kBarrier) return {};
  ALLRING_ASSIGN_OR_RETURN(const std::int64_t count, element_count(request.shape, request.dtype));
  tensor.count = static_cast<std::size_t>(count);
  tensor.completion.shape = output_shape(tensor, size, rank);
  tensor.output = tensor.submission.view.output;
  if (tensor.output != nullptr) return {};
  ALLRING_ASSIGN_OR_RETURN(const std::int64_t output_count,
                           element_count(tensor.completion.shape, request.dtype));
  ALLRING_ASSIGN_OR_RETURN(
      tensor.completion.allocated,
      allocate_output(static_cast<std::size_t>(output_count) * element_bytes(request.dtype)));
  tensor.output = tensor.completion.allocated.get();
  return {};
}

Status broadcast(BatchTensor& tensor, Communicator& communicator) {
  const Request& request = tensor.request();
  const void* input = tensor.submission.view.input;
  if (communicator.group().rank() == request.root && input != tensor.output && tensor.count > 0)
    std::memcpy(tensor.output, input, tensor.bytes());
  return communicator.broadcast(tensor.output, tensor.count, request.dtype, request.root,
                                kNoDeadline);
}

Status reduce_scatter(BatchTensor& tensor, Communicator& communicator, Scratch& scratch) {
  const Request& request = tensor.request();
  const int size = communicator.group().size();
  ALLRING_ASSIGN_OR_RETURN(const Scaling scaling, Scaling::of(request, size));
  const void* input = tensor.submission.view.input;
  if (scaling.prescale != 1.0) {
    ALLRING_ASSIGN_OR_RETURN(const std::span<std::byte> scaled, scratch.get(tensor.bytes()));
    scale(scaled.data(), input, tensor.count, request.dtype, scaling.prescale);
    input = scaled.data();
  }
  std::vector<std::int64_t> rows;
  for (Rank rank = 0; rank < size; ++rank) rows.push_back(kept_rows(request.shape[0], size, rank));
  return communicator.reduce_scatter(input, tensor.output, elements(rows, request),
                                     scaling.reduction, kNoDeadline);
}

Status alltoall(BatchTensor& tensor, Communicator& communicator) {
  const Request& request = tensor.request();
  tensor.completion.received_splits =
      column(tensor.sizes, communicator.group().size(), communicator.group().rank());
  return communicator.alltoall(
      tensor.submission.view.input, tensor.output, elements(request.splits, request),
      elements(tensor.completion.received_splits, request), request.dtype, kNoDeadline);
}

Status run_one(BatchTensor& tensor, Communicator& communicator, Scratch& scratch) {
  const Request& request = tensor.request();
  switch (request.kind) {
    case CollectiveKind::kReduceScatter:
      return reduce_scatter(tensor, communicator, scratch);
    case CollectiveKind::kAllgather:
      return communicator.allgather(tensor.submission.view.input, tensor.output,
                                    elements(tensor.sizes, request), request.dtype, kNoDeadline);
    case CollectiveKind::kBroadcast:
      return broadcast(tensor, communicator);
    case CollectiveKind::kAlltoall:
      return alltoall(tensor, communicator);
    case CollectiveKind::kBarrier:
      return communicator.barrier(kNoDeadline);
    case CollectiveKind::kAllreduce:
      break;
  }
  return Status::internal(tensor_text(request) + " is for the strategy to run");
}

}  // namespace

Status run_batch(Batch& batch, Communicator& communicator, Strategy& strategy, Scratch& scratch) {
  const int size = communicator.group().size();
  const Rank rank = communicator.group().rank();
  for (BatchTensor& tensor : batch.tensors)
    if (Status prepared = prepare(tensor, size, rank); !prepared.ok())
      return prepared.with_prefix(tensor_text(tensor.request()) + ": ");
  if (batch.tensors.front().request().kind == CollectiveKind::kAllreduce)
    return strategy.update(batch.tensors, communicator, scratch);
  return run_one(batch.tensors.front(), communicator, scratch);
}

}  // namespace allring
