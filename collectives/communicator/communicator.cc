#include "collectives/communicator/communicator.h"

#include <cstddef>
#include <numeric>
#include <utility>

namespace allring {

namespace {

std::size_t sum_of(std::span<const std::size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

/// For collectives that add nothing.
Reduction plain(DataType dtype) { return {dtype, ReduceOp::kSum, 1.0, 1}; }

}  // namespace

Communicator::Communicator(Group& group, ForcedAlgorithms forced)
    : group_(group), forced_(std::move(forced)) {}

const Algorithm& Communicator::choose_row(const CollectiveArgs& args) {
  const std::size_t mixed =
      (args.count * 8 + static_cast<std::size_t>(args.kind)) * std::size_t{0x9e3779b97f4a7c15};
  Choice& choice = choices_[mixed >> 58];
  static_assert(kChoices == 64, "six bits");
  if (choice.row == nullptr || choice.count != args.count || choice.kind != args.kind ||
      choice.dtype != args.reduction.dtype || choice.op != args.reduction.op) {
    choice = {args.kind, args.reduction.dtype, args.reduction.op, args.count,
              &choose(args, group_, forced_)};
  }
  return *choice.row;
}

Status Communicator::run(const CollectiveArgs& args, Deadline deadline) {
  // Shared memory would let what has arrived already pass.
  ALLRING_RETURN_IF_ERROR(group_.abort_reason());
  Status status = choose_row(args).run(args, group_, deadline);
  // Operations that were posted must not touch the caller's buffers once we have returned.
  if (!status.ok()) [[unlikely]]
    group_.abort(status);
  return status;
}

Status Communicator::allreduce(const void* input, void* output, std::size_t count,
                               const Reduction& reduction, Deadline deadline) {
  return run({.kind = CollectiveKind::kAllreduce,
              .reduction = reduction,
              .input = input,
              .output = output,
              .count = count},
             deadline);
}

Status Communicator::reduce_scatter(const void* input, void* output,
                                    std::span<const std::size_t> counts, const Reduction& reduction,
                                    Deadline deadline) {
  return run({.kind = CollectiveKind::kReduceScatter,
              .reduction = reduction,
              .input = input,
              .output = output,
              .count = sum_of(counts),
              .counts = counts},
             deadline);
}

Status Communicator::allgather(const void* input, void* output, std::span<const std::size_t> counts,
                               DataType dtype, Deadline deadline) {
  return run({.kind = CollectiveKind::kAllgather,
              .reduction = plain(dtype),
              .input = input,
              .output = output,
              .count = sum_of(counts),
              .counts = counts},
             deadline);
}

Status Communicator::broadcast(void* buffer, std::size_t count, DataType dtype, Rank root,
                               Deadline deadline) {
  return run({.kind = CollectiveKind::kBroadcast,
              .reduction = plain(dtype),
              .output = buffer,
              .count = count,
              .root = root},
             deadline);
}

Status Communicator::alltoall(const void* input, void* output,
                              std::span<const std::size_t> send_counts,
                              std::span<const std::size_t> recv_counts, DataType dtype,
                              Deadline deadline) {
  return run({.kind = CollectiveKind::kAlltoall,
              .reduction = plain(dtype),
              .input = input,
              .output = output,
              .count = sum_of(send_counts),
              .counts = send_counts,
              .recv_counts = recv_counts},
             deadline);
}

Status Communicator::barrier(Deadline deadline) {
  return run({.kind = CollectiveKind::kBarrier}, deadline);
}

}  // namespace allring
