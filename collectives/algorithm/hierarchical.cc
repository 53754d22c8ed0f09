#include "collectives/algorithm/hierarchical.h"

#include <algorithm>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/pairwise_pipeline.h"
#include "collectives/algorithm/ring.h"
#include "collectives/algorithm/rounding.h"
#include "collectives/algorithm/slots_allgather.h"
#include "collectives/algorithm/slots_reduce_scatter.h"
#include "collectives/schedule/chunks.h"

namespace allring {

namespace {

// Of what one rank sends to one host at a time: enough for a socket's bandwidth.
constexpr std::size_t kMessageBytes = 64 * 1024;
// So many turns may pass until what was sent to the other hosts is needed: each lasts about as long
// as its segment takes on the wire, 2 ms on 1 Gbit/s, 0.2 ms on 10 Gbit/s.
constexpr int kTurnsOnWire = 2;
constexpr int kDepth = kTurnsOnWire + 1;

bool supports(const CollectiveArgs&, Group& group) {
  return group.local() != nullptr && group.cross() != nullptr && group.local()->size() >= 2 &&
         group.cross()->size() >= 2;
}

/// Sums of a host must not be rounded to 16 bits, as the whole sum will be.
bool widens(const CollectiveArgs& args) { return !allows_partial_results(args.reduction); }

std::size_t segments_of(const CollectiveArgs& args, Group& group) {
  const std::size_t segment_bytes = kMessageBytes * group.size();
  return std::max<std::size_t>(1, (args.bytes() + segment_bytes - 1) / segment_bytes);
}

const Algorithm& within_host(const Algorithm& shared, const Algorithm& messages,
                             const CollectiveArgs& args, Group& local) {
  return shared.supports(args, local) ? shared : messages;
}

class Hierarchical {
 public:
  Hierarchical(const CollectiveArgs& args, Group& group, Deadline deadline)
      : args_(args),
        group_(group),
        local_(*group.local()),
        cross_(*group.cross()),
        deadline_(deadline),
        element_bytes_(element_bytes(args.reduction.dtype)),
        segments_(static_cast<int>(segments_of(args, group))),
        exchange_(
            args.reduction, [this](Rank host, int segment) { return piece(host, segment); },
            // Sums of the host lie in the output.
            static_cast<const std::byte*>(args.output), static_cast<std::byte*>(args.output), 0,
            cross_, deadline) {
    if (!widens(args)) return;
    exchange_.widen([this](const Chunk& part, int segment) {
      return wide_sums(segment) + (part.offset - slice(segment).offset);
    });
  }

  Status run() {
    const std::size_t largest_slice = args_.count / segments_ / local_.size() + 2;
    ALLRING_RETURN_IF_ERROR(exchange_.prepare(largest_slice / cross_.size() + 1, kDepth));
    if (widens(args_)) ALLRING_RETURN_IF_ERROR(make_room_for_wide(largest_slice));
    for (int turn = 0; turn < segments_ + 2 * kTurnsOnWire; ++turn) {
      if (turn < segments_) {
        ALLRING_RETURN_IF_ERROR(reduce_within_host(turn));
        ALLRING_RETURN_IF_ERROR(exchange_.send(turn));
      }
      if (const int added = turn - kTurnsOnWire; added >= 0 && added < segments_) {
        ALLRING_RETURN_IF_ERROR(exchange_.add(added));
        ALLRING_RETURN_IF_ERROR(exchange_.share(added));
      }
      if (const int settled = turn - 2 * kTurnsOnWire; settled >= 0) {
        ALLRING_RETURN_IF_ERROR(exchange_.settle(settled));
        ALLRING_RETURN_IF_ERROR(gather_within_host(settled));
      }
    }
    return {};
  }

 private:
  Chunk segment_elements(int segment) const { return even_chunk(args_.count, segments_, segment); }
  /// This rank's slice of a segment.
  Chunk slice(int segment) const {
    const Chunk whole = segment_elements(segment);
    Chunk own = even_chunk(whole.count, local_.size(), local_.rank());
    own.offset += whole.offset;
    return own;
  }
  Chunk piece(Rank host, int segment) const {
    const Chunk own = slice(segment);
    Chunk part = even_chunk(own.count, cross_.size(), host);
    part.offset += own.offset;
    return part;
  }
  std::byte* output(std::size_t element) const {
    return static_cast<std::byte*>(args_.output) + element * element_bytes_;
  }

  /// A segment of float32, and this rank's slices of those under way.
  Status make_room_for_wide(std::size_t largest_slice) {
    const std::size_t largest_segment = args_.count / segments_ + 1;
    slice_room_ = (largest_slice + 15) / 16 * 16;
    ALLRING_ASSIGN_OR_RETURN(
        const std::span<std::byte> memory,
        group_.scratch((kDepth * slice_room_ + largest_segment) * sizeof(float)));
    wide_ = reinterpret_cast<float*>(memory.data());
    return {};
  }
  float* wide_sums(int segment) const { return wide_ + segment % kDepth * slice_room_; }
  float* wide_input() const { return wide_ + kDepth * slice_room_; }

  Status reduce_within_host(int segment) {
    const Chunk whole = segment_elements(segment);
    const auto counts = even_counts(whole.count, local_.size());
    CollectiveArgs args;
    args.kind = CollectiveKind::kReduceScatter;
    args.reduction = args_.reduction.partial();
    args.input = static_cast<const std::byte*>(args_.input) + whole.offset * element_bytes_;
    args.output = output(slice(segment).offset);
    if (wide_ != nullptr) {
      const auto widen =
          args_.reduction.dtype == DataType::kFloat16 ? float16_to_float32 : bfloat16_to_float32;
      widen(wide_input(), static_cast<const std::uint16_t*>(args.input), whole.count);
      args.reduction.dtype = DataType::kFloat32;
      args.input = wide_input();
      args.output = wide_sums(segment);
    }
    args.count = whole.count;
    args.counts = counts;
    return within_host(kSlotsReduceScatter, kRingReduceScatter, args, local_)
        .run(args, local_, deadline_);
  }

  Status gather_within_host(int segment) {
    const Chunk whole = segment_elements(segment);
    const auto counts = even_counts(whole.count, local_.size());
    CollectiveArgs args;
    args.kind = CollectiveKind::kAllgather;
    args.reduction = args_.reduction.partial();
    args.input = output(slice(segment).offset);
    args.output = output(whole.offset);
    args.count = whole.count;
    args.counts = counts;
    return within_host(kSlotsAllgather, kRingAllgather, args, local_).run(args, local_, deadline_);
  }

  const CollectiveArgs& args_;
  Group& group_;
  Group& local_;
  Group& cross_;
  const Deadline deadline_;
  const std::size_t element_bytes_;
  const int segments_;
  PairwisePipeline exchange_;
  float* wide_ = nullptr;
  std::size_t slice_room_ = 0;
};

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  return Hierarchical(args, group, deadline).run();
}

double cost_us(const CollectiveArgs& args, Group& group) {
  const MessageCost wire = message_cost(group);
  const MemoryCost memory = memory_cost(group);
  const double hosts = group.cross()->size();
  const double local = group.local()->size();
  // As if each host shared memory: one may not, which the others cannot see, and all must agree.
  const double within = 2 * (local - 1) * memory.flag_us + 3 * args.bytes() * memory.us_per_byte;
  const double passes = widens(args) ? 3 : 2;  // the raw pieces are twice as long
  const double between = 2 * (wire.alpha_us + (hosts - 2) * wire.overhead_us) +
                         passes * args.bytes() * (hosts - 1) / hosts * wire.us_per_byte;
  // What is pipelined counts once: the longer of the two, and of the other one segment.
  const double segments = segments_of(args, group);
  return std::max(within, between) + std::min(within, between) / segments +
         2 * args.bytes() * reduce_us_per_byte(group);
}

}  // namespace

constinit const Algorithm kHierarchicalAllreduce{"hierarchical", CollectiveKind::kAllreduce,
                                                 supports, run, cost_us};

}  // namespace allring
