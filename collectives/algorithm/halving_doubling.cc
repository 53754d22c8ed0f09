#include "collectives/algorithm/halving_doubling.h"

#include <bit>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/rounding.h"
#include "collectives/schedule/chunks.h"
#include "collectives/schedule/halving_doubling.h"

namespace allring {

namespace {

bool supports(const CollectiveArgs& args, Group& group) {
  return group.size() == 2 || (group.size() > 2 && allows_partial_results(args.reduction));
}

/// The exchanges of one rank; all transfers are of runs of chunks of the whole vector.
class Exchanges {
 public:
  Exchanges(const CollectiveArgs& args, int chunks, Group& group, Deadline deadline)
      : transport_(group.transport()),
        tag_(group.next_tag()),
        deadline_(deadline),
        count_(args.count),
        element_bytes_(element_bytes(args.reduction.dtype)),
        chunks_(chunks) {}

  Chunk elements(const ChunkRun& run) const {
    const std::size_t begin = even_chunk(count_, chunks_, run.begin).offset;
    const std::size_t end =
        run.end == chunks_ ? count_ : even_chunk(count_, chunks_, run.end).offset;
    return {begin, end - begin};
  }

  /// Either side may be empty.
  Status swap(Rank peer, const void* source, std::size_t send_count, void* target,
              std::size_t recv_count) {
    Ticket receive = 0, send = 0;
    if (recv_count > 0) {
      ALLRING_ASSIGN_OR_RETURN(
          receive, transport_.post_recv(
                       peer, tag_, {static_cast<std::byte*>(target), recv_count * element_bytes_}));
    }
    if (send_count > 0) {
      ALLRING_ASSIGN_OR_RETURN(send, transport_.post_send(peer, tag_,
                                                          {static_cast<const std::byte*>(source),
                                                           send_count * element_bytes_}));
    }
    if (receive != 0) ALLRING_RETURN_IF_ERROR(transport_.wait(receive, deadline_));
    if (send != 0) ALLRING_RETURN_IF_ERROR(transport_.wait(send, deadline_));
    return {};
  }

 private:
  Transport& transport_;
  const Tag tag_;
  const Deadline deadline_;
  const std::size_t count_;
  const std::size_t element_bytes_;
  const int chunks_;
};

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  using Fold = HalvingDoubling::Fold;
  const HalvingDoubling plan = halving_doubling(group.rank(), group.size());
  Exchanges exchanges(args, plan.chunks, group, deadline);
  const std::size_t element = element_bytes(args.reduction.dtype);
  auto* output = static_cast<std::byte*>(args.output);

  if (plan.fold == Fold::kGivesAway) {
    ALLRING_RETURN_IF_ERROR(exchanges.swap(plan.fold_peer, args.input, args.count, nullptr, 0));
    return exchanges.swap(plan.fold_peer, nullptr, 0, output, args.count);
  }

  ALLRING_ASSIGN_OR_RETURN(const auto scratch, group.scratch(args.bytes()));
  const auto* sum = static_cast<const std::byte*>(args.input);
  if (plan.fold == Fold::kTakesIn) {
    ALLRING_RETURN_IF_ERROR(exchanges.swap(plan.fold_peer, nullptr, 0, scratch.data(), args.count));
    reduce2(output, scratch.data(), sum, args.count, args.reduction.partial());
    sum = output;
  }
  for (std::size_t step = 0; step < plan.halving.size(); ++step) {
    const HalvingStep& halving = plan.halving[step];
    const Chunk send = exchanges.elements(halving.send);
    const Chunk keep = exchanges.elements(halving.recv);
    ALLRING_RETURN_IF_ERROR(exchanges.swap(halving.peer, sum + send.offset * element, send.count,
                                           scratch.data(), keep.count));
    const bool last = step + 1 == plan.halving.size();
    reduce2(output + keep.offset * element, scratch.data(), sum + keep.offset * element, keep.count,
            last ? args.reduction : args.reduction.partial());
    sum = output;
  }
  for (const HalvingStep& doubling : plan.doubling) {
    const Chunk send = exchanges.elements(doubling.send);
    const Chunk recv = exchanges.elements(doubling.recv);
    ALLRING_RETURN_IF_ERROR(exchanges.swap(doubling.peer, output + send.offset * element,
                                           send.count, output + recv.offset * element, recv.count));
  }
  if (plan.fold == Fold::kTakesIn) {
    return exchanges.swap(plan.fold_peer, output, args.count, nullptr, 0);
  }
  return {};
}

double cost_us(const CollectiveArgs& args, Group& group) {
  const MessageCost message = message_cost(group);
  const auto size = static_cast<unsigned>(group.size());
  const unsigned power = std::bit_floor(size);
  const double steps = 2.0 * (std::bit_width(power) - 1);
  const double bytes = 2.0 * args.bytes() * (power - 1) / power;
  const bool folds = power != size;
  // Partners are far apart: all ranks of a host cross the wire at once.
  return (steps + (folds ? 2 : 0)) * message.alpha_us +
         (bytes + (folds ? 2.0 * args.bytes() : 0)) * message.ranks_per_host * message.us_per_byte +
         2 * args.bytes() * reduce_us_per_byte(group);
}

}  // namespace

constinit const Algorithm kHalvingDoublingAllreduce{"halving_doubling", CollectiveKind::kAllreduce,
                                                    supports, run, cost_us};

}  // namespace allring
