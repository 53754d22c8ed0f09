#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "collectives/kernels/reduce.h"
#include "collectives/schedule/chunks.h"
#include "collectives/transport/group.h"

namespace allring {

/// The pairwise exchange as a pipeline over segments, in parts that the caller orders, so that
/// other work fits between them. Each segment has a piece for each rank to own.
///
/// For each segment, in ascending order: send(s) posts the raw segment of each chunk to its owner
/// and receives for one's own; add(s) waits for these and adds them up; share(s) posts the sums of
/// segment s to all others and receives theirs; settle(s) waits for these. At most `depth`
/// segments may be between send and add, and as many between share and settle. All ranks must
/// make the same calls in the same order. No call but add and settle blocks.
class PairwisePipeline {
 public:
  /// Elements of the vector, equal on all ranks.
  using Pieces = std::function<Chunk(Rank owner, int segment)>;

  /// @param input the whole vector.
  /// @param output the vector from element `output_begin`: all of it (equal to input is in place),
  ///        or, if sums are never shared, the own pieces.
  PairwisePipeline(const Reduction& reduction, Pieces pieces, const std::byte* input,
                   std::byte* output, std::size_t output_begin, Group& group, Deadline deadline);

  /// Where float32 pieces of a segment lie that is sent; see widen().
  using Wide = std::function<const float*(const Chunk& piece, int segment)>;

  /// For 16-bit sums of what is a partial sum already: the pieces that go to their owners are
  /// float32, from `wide` instead of the input, and are rounded once, when they are added; the sums
  /// travel as 16 bits. Before prepare().
  void widen(Wide wide);
  /// Gets working memory for `depth` pieces of so many elements at most from each rank. Once,
  /// before all others.
  Status prepare(std::size_t largest_piece, int depth);
  Status send(int segment);
  Status add(int segment);
  Status share(int segment);
  Status settle(int segment);

 private:
  std::byte* in_output(const Chunk& elements) const {
    return output_ + (elements.offset - output_begin_) * element_bytes_;
  }
  std::byte* received(int segment, Rank from) const;
  const std::byte* raw(const Chunk& piece, int segment) const;
  void add_wide(const Chunk& own, int segment);
  Status wait_all(std::vector<Ticket>* tickets);

  const Reduction reduction_;
  const Pieces pieces_;
  const std::byte* const input_;
  std::byte* const output_;
  const std::size_t output_begin_;
  Group& group_;
  const Deadline deadline_;
  const std::size_t element_bytes_;
  std::size_t raw_element_bytes_;
  Wide wide_;
  const Tag tag_;
  std::size_t slot_bytes_ = 0;
  std::span<std::byte> scratch_;
  std::vector<const void*> sources_;
  int depth_ = 0;
  std::vector<std::vector<Ticket>> raw_;  // [segment % depth]
  std::vector<std::vector<Ticket>> shared_;
};

/// Estimated microseconds for `phases` exchanges of `bytes` in total.
double pairwise_cost_us(std::size_t bytes, int phases, const Group& group);

}  // namespace allring
