#include "collectives/algorithm/line.h"

#include <atomic>
#include <cstring>

#include "collectives/algorithm/cost_model.h"
#include "collectives/algorithm/host_ranks.h"
#include "collectives/algorithm/slot_protocol.h"

namespace allring {

namespace {

constexpr std::size_t kPayloadBytes = 56;

struct Line {
  std::byte payload[kPayloadBytes];
  std::atomic<std::uint64_t> sequence;
};
static_assert(sizeof(Line) == 64);

bool supports(const CollectiveArgs& args, Group& group) {
  return shares_memory(group) && args.bytes() <= kPayloadBytes;
}

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  HostMemory& memory = *group.host_memory();
  const std::uint64_t sequence = ++memory.sequence(kLineSequence);
  const int parity = static_cast<int>(sequence % 2);
  const auto line = [&](Rank rank) { return reinterpret_cast<Line*>(memory.line(parity, rank)); };

  Line* own = line(group.rank());
  if (args.count > 0) std::memcpy(own->payload, args.input, args.bytes());
  own->sequence.store(sequence, std::memory_order_release);

  const void* sources[kMostHostRanks];
  for (Rank rank = 0; rank < group.size(); ++rank) {
    Line* theirs = line(rank);
    sources[rank] = theirs->payload;
    const auto arrived = [&] {
      return theirs->sequence.load(std::memory_order_acquire) >= sequence;
    };
    ALLRING_RETURN_IF_ERROR(memory.wait_until(arrived, rank, deadline));
  }
  void* output = args.output;
  reduce({&output, 1}, {sources, static_cast<std::size_t>(group.size())}, args.count,
         args.reduction);
  return {};
}

double cost_us(const CollectiveArgs&, Group& group) {
  return memory_cost(group).line_us * (group.size() - 1);
}

}  // namespace

constinit const Algorithm kLineAllreduce{"line",  CollectiveKind::kAllreduce, supports, run,
                                         cost_us, /*in_rank_order=*/true};

}  // namespace allring
