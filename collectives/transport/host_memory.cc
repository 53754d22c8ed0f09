#include "collectives/transport/host_memory.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>

#include "collectives/transport/core_mask.h"
#include "collectives/transport/relax.h"

namespace allring {

namespace {

constexpr std::size_t kFlagBytes = 128;  // two lines: the adjacent-line prefetcher pairs them
constexpr std::size_t kPageBytes = 4096;
constexpr nanoseconds kLongestSleep = milliseconds(10);

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::size_t lines_offset(int ranks) { return HostMemory::kFlagLines * ranks * kFlagBytes; }
std::size_t slots_offset(int ranks) {
  return round_up(lines_offset(ranks) + 2 * ranks * HostMemory::kLineStride, kPageBytes);
}

bool reached(std::uint32_t now, std::uint32_t wanted) {
  return static_cast<std::int32_t>(now - wanted) >= 0;
}

int available_cores() {
  const std::string mask = this_core_mask();
  const std::string_view masks[] = {mask};
  const int cores = count_cores(masks);
  return cores > 0 ? cores : static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

int turns_for(nanoseconds duration) {
  constexpr int kSample = 512;
  Clock& clock = Clock::real();
  nanoseconds best = nanoseconds::max();
  for (int repeat = 0; repeat < 3; ++repeat) {  // the fastest: others were interrupted
    const TimePoint start = clock.now();
    for (int turn = 0; turn < kSample; ++turn) relax();
    best = std::min(best, clock.now() - start);
  }
  return static_cast<int>(kSample * duration / std::max(best, nanoseconds(1)));
}

timespec to_timespec(nanoseconds duration) {
  const auto whole = std::chrono::duration_cast<seconds>(duration);
  return {.tv_sec = whole.count(), .tv_nsec = (duration - whole).count()};
}

constexpr std::uint64_t kEagerTurns = 8;

/// How long one sleep may last, so that deadlines and aborts are seen in time.
nanoseconds sleep_length(nanoseconds longest, Deadline deadline) {
  if (deadline == kNoDeadline) return longest;
  return std::clamp<nanoseconds>(deadline - Clock::real().now(), microseconds(1), longest);
}

}  // namespace

WaitPolicy WaitPolicy::choose(int ranks_on_host, std::string_view mode, int cores) {
  const int turns = turns_for(microseconds(50));
  if (mode == "spin") return {.spins = SpinBudget::kAlways, .yields = 0};
  if (mode == "yield") return {.spins = 0, .yields = std::numeric_limits<int>::max()};
  if (mode == "block") return {.spins = 0, .yields = 0};
  ALLRING_CHECK(mode == "auto", "WAIT is auto, spin, yield or block");
  if ((cores > 0 ? cores : available_cores()) >= ranks_on_host)
    return {.spins = turns, .yields = 16};
  // A turn is 0.6 us when nobody else wants the core, and a hand-over when someone does.
  return {.spins = 0, .yields = 1000};
}

struct alignas(kFlagBytes) HostMemory::Flag {
  std::atomic<std::uint32_t> value;
  std::atomic<std::uint32_t> sleepers;
};

std::size_t HostMemory::Shape::bytes() const {
  return slots_offset(ranks) + static_cast<std::size_t>(buffers) * ranks * slot_bytes;
}

HostMemory::HostMemory(Shape shape, Rank rank, std::span<std::byte> memory,
                       std::shared_ptr<void> owner, WaitPolicy policy)
    : shape_(shape),
      rank_(rank),
      memory_(memory),
      owner_(std::move(owner)),
      policy_(policy),
      spin_budget_(policy.spins) {
  lines_ = memory_.data() + lines_offset(shape.ranks);
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");
  ALLRING_CHECK(shape.ranks >= 1 && rank >= 0 && rank < shape.ranks, "rank out of range");
  ALLRING_CHECK(shape.buffers >= 3, "the slot protocol needs three buffers");
  ALLRING_CHECK(shape.slot_bytes > 0 && shape.slot_bytes % kPageBytes == 0, "slot_bytes");
  ALLRING_CHECK(memory.size() >= shape.bytes(), "memory is smaller than its shape");
  ALLRING_CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % kPageBytes == 0, "alignment");
  can_fence_sleepers_ =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

std::byte* HostMemory::slot(int buffer, Rank owner) const {
  const std::size_t index = static_cast<std::size_t>(buffer) * shape_.ranks + owner;
  return memory_.data() + slots_offset(shape_.ranks) + index * shape_.slot_bytes;
}

HostMemory::Flag& HostMemory::flag(int line, Rank owner) const {
  const std::size_t index = static_cast<std::size_t>(line) * shape_.ranks + owner;
  return *reinterpret_cast<Flag*>(memory_.data() + index * kFlagBytes);
}

// The store and the load below may pass each other. A full fence here would cost every post the
// drain of the store buffer (about one line transfer); instead a rank that goes to sleep makes all
// the others execute one (sleep_on), which is rare.
void HostMemory::post(int line, std::uint32_t value) {
  Flag& own = flag(line, rank_);
  own.value.store(value, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (own.sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]]
    syscall(SYS_futex, &own.value, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
}

Status HostMemory::wait_at_least(int line, Rank owner, std::uint32_t value, Deadline deadline) {
  Flag& awaited = flag(line, owner);
  Turn turn;
  while (!reached(awaited.value.load(std::memory_order_acquire), value)) {
    if (turn.count == 0) turn.spins = spin_budget_.begin();
    if (turn.count < turn.spins + policy_.yields) {
      ALLRING_RETURN_IF_ERROR(pause(turn, owner, deadline));
    } else {
      ++turn.count;
      ALLRING_RETURN_IF_ERROR(failure(owner, deadline));
      sleep_on(awaited, value, deadline);
    }
  }
  finish(turn);
  return {};
}

void HostMemory::sleep_on(Flag& flag, std::uint32_t awaited_value, Deadline deadline) {
  flag.sleepers.fetch_add(1, std::memory_order_seq_cst);
  // After this, whoever posts either sees that we sleep or has posted what we see here.
  const bool fenced =
      can_fence_sleepers_ && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
  const std::uint32_t now = flag.value.load(std::memory_order_seq_cst);
  if (!reached(now, awaited_value)) {
    // Without the fence a wake-up may be missed: sleep so briefly that it does not matter.
    const timespec length =
        to_timespec(sleep_length(fenced ? kLongestSleep : microseconds(500), deadline));
    syscall(SYS_futex, &flag.value, FUTEX_WAIT, now, &length, nullptr, 0);
  }
  flag.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

Status HostMemory::pause(Turn& turn, Rank awaited, Deadline deadline) {
  if (turn.count == 0) turn.spins = spin_budget_.begin();
  const std::uint64_t count = turn.count++;
  if (count < turn.spins) {
    // A line is on its way for about as long as one pause lasts.
    if (count >= kEagerTurns) relax();
    return count % 256 == 255 ? failure(awaited, deadline) : Status();
  }
  if (count < turn.spins + policy_.yields) {
    sched_yield();
    return count % 16 == 15 ? failure(awaited, deadline) : Status();
  }
  ALLRING_RETURN_IF_ERROR(failure(awaited, deadline));
  // Nobody wakes us: naps from 20 us, doubled up to 1 ms.
  const std::uint64_t naps = std::min<std::uint64_t>(count - turn.spins - policy_.yields, 6);
  const timespec length = to_timespec(
      sleep_length(std::min<nanoseconds>(microseconds(20 << naps), milliseconds(1)), deadline));
  clock_nanosleep(CLOCK_MONOTONIC, 0, &length, nullptr);
  return {};
}

Status HostMemory::failure(Rank awaited, Deadline deadline) const {
  if (aborted_.load(std::memory_order_acquire)) return *reason_;
  if (deadline == kNoDeadline || Clock::real().now() < deadline) return {};
  return Status::timed_out(
      "rank " + std::to_string(rank_) + " of the " + std::to_string(shape_.ranks) +
      " that share this host's memory waited for rank " + std::to_string(awaited) +
      " of them, which did not come in time: see whether it is stopped, or calls something else");
}

void HostMemory::abort(Status reason) noexcept {
  ALLRING_CHECK(!reason.ok(), "abort needs a reason");
  if (abort_claimed_.exchange(true)) return;
  reason_ = std::make_shared<const Status>(std::move(reason));
  aborted_.store(true, std::memory_order_release);
}

}  // namespace allring
