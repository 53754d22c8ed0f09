#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectives/algorithm/slot_protocol.h"
#include "collectives/base/status.h"
#include "collectives/transport/host_memory.h"

namespace allring {

/// One message of up to 56 bytes from every rank of the host to every rank, each in one cache line
/// with its sequence number: reading it is one miss. Every rank makes one and awaits all, itself
/// perhaps excepted. Everything written before announce() is seen after await(). Thread-compatible.
class LineExchange {
 public:
  static constexpr std::size_t kPayloadBytes = 56;

  explicit LineExchange(HostMemory& memory)
      : memory_(memory), sequence_(++memory.sequence(kLineSequence)) {}

  /// Where this rank's message goes.
  std::byte* payload() const { return line(memory_.rank())->payload; }
  void announce() { line(memory_.rank())->sequence.store(sequence_, std::memory_order_release); }

  /// Whether payload(rank) is there.
  bool arrived(Rank rank) const {
    return line(rank)->sequence.load(std::memory_order_acquire) >= sequence_;
  }
  /// Waits until it is. Sleeps badly: for ranks that come at the same time.
  Status await(Rank rank, Deadline deadline) const {
    return memory_.wait_until([&] { return arrived(rank); }, rank, deadline);
  }
  const std::byte* payload(Rank rank) const { return line(rank)->payload; }

 private:
  struct Line {
    std::byte payload[kPayloadBytes];
    std::atomic<std::uint64_t> sequence;
  };
  static_assert(sizeof(Line) == 64);

  Line* line(Rank rank) const {
    return reinterpret_cast<Line*>(memory_.line(static_cast<int>(sequence_ % 2), rank));
  }

  HostMemory& memory_;
  const std::uint64_t sequence_;
};

}  // namespace allring
