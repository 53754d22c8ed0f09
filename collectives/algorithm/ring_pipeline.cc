#include "collectives/algorithm/ring_pipeline.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/algorithm/cost_model.h"
#include "collectives/schedule/chunks.h"
#include "collectives/schedule/ring.h"

namespace allring {

namespace {

// Long enough for a socket's bandwidth, short enough for several to stay in the second-level cache.
constexpr std::size_t kSegmentBytes = 128 * 1024;
constexpr int kMostWidth = 4;  // segments of a slab

/// A hop is one segment moving from one rank to the next. Hops are numbered in the order in which
/// every rank sends them: by slab, then step, then segment within the slab.
class RingRun {
 public:
  RingRun(const RingTask& task, Group& group, Deadline deadline)
      : task_(task),
        group_(group),
        deadline_(deadline),
        size_(group.size()),
        element_bytes_(allring::element_bytes(task.reduction.dtype)),
        offsets_(offsets_of(task.counts)) {
    const Topology& topology = group.topology();
    for (int host = 0; host < topology.hosts(); ++host) {
      for (Rank rank : topology.ranks_on(host)) order_.push_back(rank);
    }
    place_ =
        static_cast<int>(std::find(order_.begin(), order_.end(), group.rank()) - order_.begin());
    next_ = order_[(place_ + 1) % size_];
    previous_ = order_[(place_ + size_ - 1) % size_];

    const std::size_t largest =
        *std::max_element(task.counts.begin(), task.counts.end()) * element_bytes_;
    const std::size_t segments =
        std::max<std::size_t>(1, (largest + kSegmentBytes - 1) / kSegmentBytes);
    width_ = static_cast<int>(std::min<std::size_t>(segments, kMostWidth));
    slabs_ = (segments + width_ - 1) / width_;
    // even_chunk() rounds up by one element at most.
    segment_bytes_ = (largest / (slabs_ * width_) + element_bytes_ + kCacheLineBytes) /
                     kCacheLineBytes * kCacheLineBytes;
    reduce_steps_ = task.reduces ? ring_steps(size_) : 0;
    steps_ = reduce_steps_ + (task.gathers ? ring_steps(size_) : 0);
    hops_ = slabs_ * steps_ * width_;
  }

  Status run() {
    tag_ = group_.next_tag();
    const std::size_t width = width_;
    if (task_.reduces) {
      // Received segments, and where partial sums wait to be sent if output has no room for them.
      ALLRING_ASSIGN_OR_RETURN(scratch_, group_.scratch(2 * width * segment_bytes_));
    }
    sends_.assign(hops_, 0);
    receives_.assign(width, 0);
    for (std::size_t hop = 0; hop < std::min(width, hops_); ++hop) {
      ALLRING_RETURN_IF_ERROR(post_receive(hop));
    }
    for (std::size_t hop = 0; hop < std::min(width, hops_); ++hop) {
      ALLRING_RETURN_IF_ERROR(post_send(hop));
    }
    for (std::size_t hop = 0; hop < hops_; ++hop) {
      ALLRING_RETURN_IF_ERROR(finish(receives_[hop % width]));
      const Hop received = receiving(hop);
      if (received.reducing) {
        if (!task_.gathers) ALLRING_RETURN_IF_ERROR(finish_sends(hop));  // staging(hop) is free
        add(hop, received);
      }
      if (hop + width < hops_) {
        ALLRING_RETURN_IF_ERROR(post_send(hop + width));
        ALLRING_RETURN_IF_ERROR(post_receive(hop + width));
      }
    }
    return finish_sends(hops_ - 1);
  }

 private:
  struct Hop {
    bool reducing;       // else gathering
    bool last_addition;  // the chunk is complete afterwards
    bool first;          // sent for the first time: straight from the input
    Chunk elements;      // of the whole vector
    std::size_t within_chunk;
  };

  int step_of(std::size_t hop) const { return static_cast<int>(hop / width_ % steps_); }

  Hop describe(std::size_t hop, bool sending) const {
    const int step = step_of(hop);
    const bool reducing = step < reduce_steps_;
    const RingStep ring = reducing ? ring_reduce_scatter_step(place_, size_, step)
                                   : ring_allgather_step(place_, size_, step - reduce_steps_);
    const Rank owner = order_[sending ? ring.send_chunk : ring.recv_chunk];
    const std::size_t slab = hop / width_ / steps_;
    const std::size_t segment = slab * width_ + hop % width_;
    const Chunk within = even_chunk(task_.counts[owner], static_cast<int>(slabs_ * width_),
                                    static_cast<int>(segment));
    return {reducing,
            reducing && step == reduce_steps_ - 1,
            step == 0,
            {offsets_[owner] + within.offset, within.count},
            within.offset};
  }
  Hop sending(std::size_t hop) const { return describe(hop, true); }
  Hop receiving(std::size_t hop) const { return describe(hop, false); }

  std::byte* window(std::size_t hop) const {
    return scratch_.data() + hop % width_ * segment_bytes_;
  }
  std::byte* staging(std::size_t hop) const {
    return scratch_.data() + (width_ + hop % width_) * segment_bytes_;
  }
  std::byte* in_output(const Chunk& elements) const {
    return task_.output + elements.offset * element_bytes_;
  }

  // Where the sum of a reducing hop goes, and where the next hop of the segment is sent from.
  std::byte* sum(std::size_t hop, const Hop& received) const {
    if (task_.gathers) return in_output(received.elements);
    if (received.last_addition) return task_.output + received.within_chunk * element_bytes_;
    return staging(hop);
  }

  void add(std::size_t hop, const Hop& received) const {
    reduce2(sum(hop, received), window(hop),
            task_.input + received.elements.offset * element_bytes_, received.elements.count,
            received.last_addition ? task_.reduction : task_.reduction.partial());
  }

  Status post_send(std::size_t hop) {
    const Hop sent = sending(hop);
    if (sent.elements.count == 0) return {};
    const std::byte* source = nullptr;
    if (sent.first && task_.reduces) {
      source = task_.input + sent.elements.offset * element_bytes_;
    } else if (task_.gathers) {
      source = in_output(sent.elements);
    } else {
      source = staging(hop - width_);
    }
    ALLRING_ASSIGN_OR_RETURN(
        sends_[hop],
        group_.transport().post_send(next_, tag_, {source, sent.elements.count * element_bytes_}));
    return {};
  }

  Status post_receive(std::size_t hop) {
    const Hop received = receiving(hop);
    if (received.elements.count == 0) return {};
    if (!received.reducing && task_.reduces) {
      // This place was sent from, as a partial sum, as many hops ago as there are in one phase.
      ALLRING_RETURN_IF_ERROR(finish_sends(hop - reduce_steps_ * width_));
    }
    std::byte* target = received.reducing ? window(hop) : in_output(received.elements);
    ALLRING_ASSIGN_OR_RETURN(
        receives_[hop % width_],
        group_.transport().post_recv(previous_, tag_,
                                     {target, received.elements.count * element_bytes_}));
    return {};
  }

  Status finish(Ticket& ticket) {
    const Ticket taken = std::exchange(ticket, 0);
    return taken == 0 ? Status() : group_.transport().wait(taken, deadline_);
  }

  /// Up to and including `hop`.
  Status finish_sends(std::size_t hop) {
    for (; sends_finished_ <= hop; ++sends_finished_)
      ALLRING_RETURN_IF_ERROR(finish(sends_[sends_finished_]));
    return {};
  }

  const RingTask& task_;
  Group& group_;
  const Deadline deadline_;
  const int size_;
  const std::size_t element_bytes_;
  const std::vector<std::size_t> offsets_;
  std::vector<Rank> order_;
  int place_ = 0;
  Rank next_ = 0;
  Rank previous_ = 0;
  int width_ = 1;
  std::size_t slabs_ = 1;
  std::size_t segment_bytes_ = 0;
  int reduce_steps_ = 0;
  int steps_ = 0;
  std::size_t hops_ = 0;

  Tag tag_ = 0;
  std::span<std::byte> scratch_;
  std::vector<Ticket> receives_;  // [hop % width]
  std::vector<Ticket> sends_;     // [hop]; 0 once waited for
  std::size_t sends_finished_ = 0;
};

}  // namespace

Status run_ring(const RingTask& task, Group& group, Deadline deadline) {
  return RingRun(task, group, deadline).run();
}

double ring_cost_us(std::size_t bytes, int phases, const Group& group) {
  const MessageCost message = message_cost(group);
  const double size = group.size();
  return phases * (size - 1) * (message.alpha_us + bytes / size * message.us_per_byte);
}

}  // namespace allring
