#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/spin_budget.h"

namespace allring {

/// How a thread waits for a word in shared memory to change.
struct WaitPolicy {
  int spins = 0;   ///< pause-loop turns first (cores >= ranks), 0 when the host is oversubscribed
  int yields = 0;  ///< then sched_yield() turns, then futex sleeps that check for abort

  /// From the number of ranks on the host and of the cores that they may run on: spin about 50 us
  /// when there is a core for each rank, else yield at once. `mode` is the option WAIT: "auto",
  /// "spin", "yield" or "block". Takes about 50 us: it measures the pause instruction.
  /// @param cores of all ranks together (each may be bound to its own); 0: those of this process.
  static WaitPolicy choose(int ranks_on_host, std::string_view mode = "auto", int cores = 0);
};

/// Memory that all ranks of one group on one host see: per rank a few sequence flags and a ring
/// of slots. The only thing besides Transport that moves bytes between ranks; the shared-memory
/// rows of the catalog are written over it.
///
/// Layout: flag(line, owner) is a 32-bit counter alone in 128 bytes, written by its owner only
/// and growing by wrap-around arithmetic; slot(buffer, owner) is slot_bytes() of payload. All ranks
/// must agree on who writes which bytes when: flags order that.
///
/// Thread-compatible (the lane that owns it), except abort().
class HostMemory {
 public:
  static constexpr int kFlagLines = 6;
  static constexpr std::size_t kLineStride = 128;  ///< some prefetchers fetch lines in pairs

  struct Shape {
    int ranks = 1;
    int buffers = 3;                      ///< slots per rank, at least 3: depth of the pipeline
    std::size_t slot_bytes = 256 * 1024;  ///< multiple of 4096
    std::size_t bytes() const;
  };

  /// A view of `memory` (shape.bytes() zeroed bytes, the same physical memory on every rank,
  /// aligned to 4096). `owner` keeps the memory alive.
  HostMemory(Shape shape, Rank rank, std::span<std::byte> memory, std::shared_ptr<void> owner,
             WaitPolicy policy);

  Rank rank() const { return rank_; }
  int ranks() const { return shape_.ranks; }
  int buffers() const { return shape_.buffers; }
  std::size_t slot_bytes() const { return shape_.slot_bytes; }

  std::byte* slot(int buffer, Rank owner) const;
  /// 64 bytes, one cache line each, two per rank: payload and sequence number of a tiny message.
  std::byte* line(int parity, Rank owner) const {
    return lines_ + static_cast<std::size_t>(parity * shape_.ranks + owner) * kLineStride;
  }

  /// Publishes everything this rank wrote before: its own flag becomes `value`, sleepers wake.
  void post(int line, std::uint32_t value);

  /// Blocks until flag(line, owner) >= value in wrap-around order.
  /// @return kTimedOut naming the rank that did not come, or what abort() was given.
  Status wait_at_least(int line, Rank owner, std::uint32_t value, Deadline deadline);

  /// Waits until `ready()` holds, by the same policy, for conditions other than flags (lines).
  template <typename Ready>
  Status wait_until(Ready&& ready, Rank awaited, Deadline deadline);

  /// Counters of this rank's own progress, private to it; algorithms advance them
  /// (algorithm/slot_protocol.h says which is which). The low 32 bits of one are what post() shows.
  std::uint64_t& sequence(int index) { return sequence_[index]; }

  /// Makes every pending and later wait of this rank fail with `reason`, a sleeping one within
  /// about 10 ms. The first reason stays. Thread-safe.
  void abort(Status reason) noexcept;

 private:
  struct Flag;
  struct Turn {
    std::uint64_t count = 0;
    std::uint64_t spins = 0;  ///< of these turns, how many spin
  };
  Flag& flag(int line, Rank owner) const;
  /// One turn of waiting on something that is not a flag: spins, yields, then sleeps briefly.
  Status pause(Turn& turn, Rank awaited, Deadline deadline);
  /// What was waited for has come.
  void finish(const Turn& turn) {
    if (turn.count > 0) turn.count <= turn.spins ? spin_budget_.caught() : spin_budget_.missed();
  }
  /// Sleeps until the flag changes, for 10 ms at most.
  void sleep_on(Flag& flag, std::uint32_t awaited_value, Deadline deadline);
  /// Why waiting must end, or ok.
  Status failure(Rank awaited, Deadline deadline) const;

  Shape shape_;
  Rank rank_;
  std::byte* lines_ = nullptr;
  std::span<std::byte> memory_;
  std::shared_ptr<void> owner_;
  WaitPolicy policy_;
  SpinBudget spin_budget_;
  bool can_fence_sleepers_;
  std::uint64_t sequence_[kFlagLines] = {};
  std::atomic<bool> abort_claimed_{false};
  std::atomic<bool> aborted_{false};
  std::shared_ptr<const Status> reason_;  // written once, before aborted_ is set
};

template <typename Ready>
Status HostMemory::wait_until(Ready&& ready, Rank awaited, Deadline deadline) {
  Turn turn;
  while (!ready()) ALLRING_RETURN_IF_ERROR(pause(turn, awaited, deadline));
  finish(turn);
  return {};
}

}  // namespace allring
