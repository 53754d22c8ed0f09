#include "collectives/algorithm/pairwise_pipeline.h"

#include <algorithm>
#include <utility>

#include "collectives/algorithm/cost_model.h"

namespace allring {

PairwisePipeline::PairwisePipeline(const Reduction& reduction, Pieces pieces,
                                   const std::byte* input, std::byte* output,
                                   std::size_t output_begin, Group& group, Deadline deadline)
    : reduction_(reduction),
      pieces_(std::move(pieces)),
      input_(input),
      output_(output),
      output_begin_(output_begin),
      group_(group),
      deadline_(deadline),
      element_bytes_(allring::element_bytes(reduction.dtype)),
      raw_element_bytes_(element_bytes_),
      tag_(group.next_tag()),
      sources_(group.size()) {}

void PairwisePipeline::widen(Wide wide) {
  wide_ = std::move(wide);
  raw_element_bytes_ = sizeof(float);
}

const std::byte* PairwisePipeline::raw(const Chunk& piece, int segment) const {
  if (wide_) return reinterpret_cast<const std::byte*>(wide_(piece, segment));
  return input_ + piece.offset * element_bytes_;
}

Status PairwisePipeline::prepare(std::size_t largest_piece, int depth) {
  depth_ = depth;
  raw_.resize(depth);
  shared_.resize(depth);
  slot_bytes_ = (largest_piece * raw_element_bytes_ + kCacheLineBytes - 1) / kCacheLineBytes *
                kCacheLineBytes;
  ALLRING_ASSIGN_OR_RETURN(scratch_, group_.scratch(depth * group_.size() * slot_bytes_));
  return {};
}

std::byte* PairwisePipeline::received(int segment, Rank from) const {
  const std::size_t index = static_cast<std::size_t>(segment % depth_) * group_.size() + from;
  return scratch_.data() + index * slot_bytes_;
}

Status PairwisePipeline::wait_all(std::vector<Ticket>* tickets) {
  for (Ticket ticket : *tickets) {
    ALLRING_RETURN_IF_ERROR(group_.transport().wait(ticket, deadline_));
  }
  tickets->clear();
  return {};
}

Status PairwisePipeline::send(int segment) {
  const int size = group_.size();
  const Rank rank = group_.rank();
  std::vector<Ticket>& tickets = raw_[segment % depth_];
  const Chunk own = pieces_(rank, segment);
  for (int step = 1; step < size && own.count > 0; ++step) {
    const Rank from = (rank + size - step) % size;
    ALLRING_ASSIGN_OR_RETURN(
        tickets.emplace_back(),
        group_.transport().post_recv(from, tag_,
                                     {received(segment, from), own.count * raw_element_bytes_}));
  }
  for (int step = 1; step < size; ++step) {
    const Rank to = (rank + step) % size;
    const Chunk theirs = pieces_(to, segment);
    if (theirs.count == 0) continue;
    ALLRING_ASSIGN_OR_RETURN(
        tickets.emplace_back(),
        group_.transport().post_send(to, tag_,
                                     {raw(theirs, segment), theirs.count * raw_element_bytes_}));
  }
  return {};
}

Status PairwisePipeline::add(int segment) {
  // The sends too: share() receives into the places that they are read from.
  ALLRING_RETURN_IF_ERROR(wait_all(&raw_[segment % depth_]));
  const Chunk own = pieces_(group_.rank(), segment);
  for (Rank from = 0; from < group_.size(); ++from) sources_[from] = received(segment, from);
  sources_[group_.rank()] = raw(own, segment);
  if (wide_) {
    add_wide(own, segment);
    return {};
  }
  void* sum = in_output(own);
  reduce({&sum, 1}, sources_, own.count, reduction_);
  return {};
}

void PairwisePipeline::add_wide(const Chunk& own, int segment) {
  // Nothing is received from oneself.
  void* sum = received(segment, group_.rank());
  Reduction wide = reduction_;
  wide.dtype = DataType::kFloat32;
  reduce({&sum, 1}, sources_, own.count, wide);
  auto* rounded = reinterpret_cast<std::uint16_t*>(in_output(own));
  const auto narrow =
      reduction_.dtype == DataType::kFloat16 ? float32_to_float16 : float32_to_bfloat16;
  narrow(rounded, static_cast<const float*>(sum), own.count);
}

Status PairwisePipeline::share(int segment) {
  const int size = group_.size();
  const Rank rank = group_.rank();
  std::vector<Ticket>& tickets = shared_[segment % depth_];
  for (int step = 1; step < size; ++step) {
    const Rank from = (rank + size - step) % size;
    const Chunk theirs = pieces_(from, segment);
    if (theirs.count == 0) continue;
    ALLRING_ASSIGN_OR_RETURN(tickets.emplace_back(),
                             group_.transport().post_recv(
                                 from, tag_, {in_output(theirs), theirs.count * element_bytes_}));
  }
  const Chunk own = pieces_(rank, segment);
  for (int step = 1; step < size && own.count > 0; ++step) {
    const Rank to = (rank + step) % size;
    ALLRING_ASSIGN_OR_RETURN(
        tickets.emplace_back(),
        group_.transport().post_send(to, tag_, {in_output(own), own.count * element_bytes_}));
  }
  return {};
}

Status PairwisePipeline::settle(int segment) { return wait_all(&shared_[segment % depth_]); }

double pairwise_cost_us(std::size_t bytes, int phases, const Group& group) {
  const MessageCost message = message_cost(group);
  const double size = group.size();
  // All ranks of a host send at once to all ranks that are elsewhere.
  const double leaving = bytes / size * (size - message.ranks_per_host) * message.ranks_per_host;
  const double within = bytes / size * (size - 1);
  // Flows that meet at a receiver disturb each other: 3 % for each beyond the first.
  const double congestion = 1 + 0.03 * (size - 2);
  return phases * (message.alpha_us + (size - 2) * message.overhead_us +
                   congestion * std::max(leaving, within) * message.us_per_byte);
}

}  // namespace allring
