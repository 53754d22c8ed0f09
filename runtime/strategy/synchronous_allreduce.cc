#include "runtime/strategy/synchronous_allreduce.h"

#include <vector>

#include "collectives/kernels/pack.h"
#include "runtime/execution/scaling.h"

namespace allring {

namespace {

Status update_one(BatchTensor& tensor, const Scaling& scaling, Communicator& communicator) {
  const void* input = tensor.submission.view.input;
  if (scaling.prescale != 1.0) {
    scale(tensor.output, input, tensor.count, tensor.request().dtype, scaling.prescale);
    input = tensor.output;
  }
  return communicator.allreduce(input, tensor.output, tensor.count, scaling.reduction, kNoDeadline);
}

Status update_packed(std::span<BatchTensor> batch, const Scaling& scaling,
                     Communicator& communicator, Scratch& scratch) {
  const DataType dtype = scaling.reduction.dtype;
  std::vector<PackPiece> inputs;
  std::vector<UnpackPiece> outputs;
  std::size_t count = 0;
  for (const BatchTensor& tensor : batch) {
    inputs.push_back({tensor.submission.view.input, tensor.count});
    outputs.push_back({tensor.output, tensor.count});
    count += tensor.count;
  }
  ALLRING_ASSIGN_OR_RETURN(const std::span<std::byte> buffer,
                           scratch.get(count * element_bytes(dtype)));
  pack(buffer.data(), inputs, dtype, scaling.prescale);
  ALLRING_RETURN_IF_ERROR(
      communicator.allreduce(buffer.data(), buffer.data(), count, scaling.reduction, kNoDeadline));
  unpack(outputs, buffer.data(), dtype, 1.0);
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
