#include "collectives/algorithm/pairwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/pairwise_pipeline.h"
#include "collectives/schedule/chunks.h"

namespace allring {

namespace {

bool supports(const CollectiveArgs&, Group& group) { return group.size() >= 2; }

constexpr int kDepth = 2;  // segments that are sent before the first is added

/// So many segments that two of each rank's fit into the second-level cache.
int good_segments(std::span<const std::size_t> counts, std::size_t element) {
  constexpr std::size_t kScratchBytes = 1 << 20;
  constexpr std::size_t kLeastSegmentBytes = 32 * 1024;
  constexpr std::size_t kMostSegmentBytes = 256 * 1024;
  const std::size_t largest = *std::max_element(counts.begin(), counts.end()) * element;
  const std::size_t segment_bytes =
      std::clamp(kScratchBytes / (2 * counts.size()), kLeastSegmentBytes, kMostSegmentBytes);
  return static_cast<int>(std::max<std::size_t>(1, (largest + segment_bytes - 1) / segment_bytes));
}

PairwisePipeline::Pieces pieces_of(std::span<const std::size_t> counts, int segments) {
  return [counts, segments, offsets = offsets_of(counts)](Rank owner, int segment) {
    Chunk piece = even_chunk(counts[owner], segments, segment);
    piece.offset += offsets[owner];
    return piece;
  };
}

Status allreduce(const CollectiveArgs& args, Group& group, Deadline deadline) {
  const auto counts = even_counts(args.count, group.size());
  const int segments = good_segments(counts, element_bytes(args.reduction.dtype));
  PairwisePipeline pipeline(args.reduction, pieces_of(counts, segments),
                            static_cast<const std::byte*>(args.input),
                            static_cast<std::byte*>(args.output), 0, group, deadline);
  ALLRING_RETURN_IF_ERROR(pipeline.prepare(counts[group.rank()] / segments + 1, kDepth));
  ALLRING_RETURN_IF_ERROR(pipeline.send(0));
  for (int segment = 0; segment < segments; ++segment) {
    if (segment + 1 < segments) ALLRING_RETURN_IF_ERROR(pipeline.send(segment + 1));
    ALLRING_RETURN_IF_ERROR(pipeline.add(segment));
    ALLRING_RETURN_IF_ERROR(pipeline.share(segment));
    if (segment > 0) ALLRING_RETURN_IF_ERROR(pipeline.settle(segment - 1));
  }
  return pipeline.settle(segments - 1);
}

Status reduce_scatter(const CollectiveArgs& args, Group& group, Deadline deadline) {
  const int segments = good_segments(args.counts, element_bytes(args.reduction.dtype));
  PairwisePipeline pipeline(
      args.reduction, pieces_of(args.counts, segments), static_cast<const std::byte*>(args.input),
      static_cast<std::byte*>(args.output), offsets_of(args.counts)[group.rank()], group, deadline);
  ALLRING_RETURN_IF_ERROR(pipeline.prepare(args.counts[group.rank()] / segments + 1, kDepth));
  ALLRING_RETURN_IF_ERROR(pipeline.send(0));
  for (int segment = 0; segment < segments; ++segment) {
    if (segment + 1 < segments) ALLRING_RETURN_IF_ERROR(pipeline.send(segment + 1));
    ALLRING_RETURN_IF_ERROR(pipeline.add(segment));
  }
  return {};
}

Status alltoall(const CollectiveArgs& args, Group& group, Deadline deadline) {
  const int size = group.size();
  const Rank rank = group.rank();
  const std::size_t element = element_bytes(args.reduction.dtype);
  const auto send_offsets = offsets_of(args.counts);
  const auto recv_offsets = offsets_of(args.recv_counts);
  const auto* input = static_cast<const std::byte*>(args.input);
  auto* output = static_cast<std::byte*>(args.output);
  const Tag tag = group.next_tag();
  std::vector<Ticket> tickets;
  tickets.reserve(2 * size);
  for (int step = 1; step < size; ++step) {
    const Rank from = (rank + size - step) % size;
    if (args.recv_counts[from] == 0) continue;
    ALLRING_ASSIGN_OR_RETURN(
        tickets.emplace_back(),
        group.transport().post_recv(
            from, tag, {output + recv_offsets[from] * element, args.recv_counts[from] * element}));
  }
  for (int step = 1; step < size; ++step) {
    const Rank to = (rank + step) % size;
    if (args.counts[to] == 0) continue;
    ALLRING_ASSIGN_OR_RETURN(
        tickets.emplace_back(),
        group.transport().post_send(
            to, tag, {input + send_offsets[to] * element, args.counts[to] * element}));
  }
  if (args.counts[rank] > 0) {
    std::memcpy(output + recv_offsets[rank] * element, input + send_offsets[rank] * element,
                args.counts[rank] * element);
  }
  for (Ticket ticket : tickets) ALLRING_RETURN_IF_ERROR(group.transport().wait(ticket, deadline));
  return {};
}

double allreduce_cost_us(const CollectiveArgs& args, Group& group) {
  return pairwise_cost_us(args.bytes(), 2, group) + args.bytes() * reduce_us_per_byte(group);
}
double reduce_scatter_cost_us(const CollectiveArgs& args, Group& group) {
  return pairwise_cost_us(args.bytes(), 1, group) + args.bytes() * reduce_us_per_byte(group);
}
// Counts differ from rank to rank, so they may not decide.
double alltoall_cost_us(const CollectiveArgs&, Group& group) {
  return pairwise_cost_us(0, 1, group);
}

}  // namespace

constinit const Algorithm kPairwiseAllreduce{"pairwise",        CollectiveKind::kAllreduce,
                                             supports,          allreduce,
                                             allreduce_cost_us, /*in_rank_order=*/true};
constinit const Algorithm kPairwiseReduceScatter{
    "pairwise",     CollectiveKind::kReduceScatter, supports,
    reduce_scatter, reduce_scatter_cost_us,         /*in_rank_order=*/true};
constinit const Algorithm kPairwiseAlltoall{"pairwise", CollectiveKind::kAlltoall, supports,
                                            alltoall, alltoall_cost_us};

}  // namespace allring
