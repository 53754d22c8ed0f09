#include "runtime/strategy/synchronous_allreduce.h"

#include <cstring>

#include "runtime/execution/scaling.h"

namespace allring {

namespace {

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
}

// The input as the reduction is to see it, at `to`.
void pack(std::byte* to, const BatchTensor& tensor, double prescale) {
  const void* input = tensor.submission.view.input;
  if (prescale != 1.0) {
    scale(to, input, tensor.count, tensor.request().dtype, prescale);
  } else {
    copy(to, input, tensor.bytes());
  }
}

Status update_one(BatchTensor& tensor, const Scaling& scaling, Communicator& communicator) {
  const void* input = tensor.submission.view.input;
  if (scaling.prescale != 1.0) {
    pack(static_cast<std::byte*>(tensor.output), tensor, scaling.prescale);
    input = tensor.output;
  }
  return communicator.allreduce(input, tensor.output, tensor.count, scaling.reduction, kNoDeadline);
}

Status update_packed(std::span<BatchTensor> batch, const Scaling& scaling,
                     Communicator& communicator, Scratch& scratch) {
  std::size_t count = 0;
  for (const BatchTensor& tensor : batch) count += tensor.count;
  const std::size_t bytes = count * element_bytes(scaling.reduction.dtype);
  ALLRING_ASSIGN_OR_RETURN(const std::span<std::byte> buffer, scratch.get(bytes));
  std::size_t offset = 0;
  for (const BatchTensor& tensor : batch) {
    pack(buffer.data() + offset, tensor, scaling.prescale);
    offset += tensor.bytes();
  }
  ALLRING_RETURN_IF_ERROR(
      communicator.allreduce(buffer.data(), buffer.data(), count, scaling.reduction, kNoDeadline));
  offset = 0;
  for (const BatchTensor& tensor : batch) {
    copy(tensor.output, buffer.data() + offset, tensor.bytes());
    offset += tensor.bytes();
  }
  return {};
}

}  // namespace

Status SynchronousAllreduce::update(std::span<BatchTensor> batch, Communicator& communicator,
                                    Scratch& scratch) {
  ALLRING_ASSIGN_OR_RETURN(const Scaling scaling,
                           Scaling::of(batch.front().request(), communicator.group().size()));
  return batch.size() == 1 ? update_one(batch.front(), scaling, communicator)
                           : update_packed(batch, scaling, communicator, scratch);
}

}  // namespace allring
