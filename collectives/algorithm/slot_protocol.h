#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/base/status.h"
#include "collectives/transport/host_memory.h"

namespace allring {

/// Who may touch which slot of a HostMemory when: the one protocol that all shared-memory rows keep
/// to, so that they can follow each other in any order without a barrier between them.
///
/// A *block* is one use of one slot of every rank. Blocks are numbered 0, 1, 2, ... over all
/// collectives of the lane, equally on all ranks; block b lies in buffer b % buffers(), and there
/// are at least three buffers. Two flags of each rank count blocks:
///
/// - published: this many blocks of the rank's own slots hold what their collective puts there;
/// - done: with this many blocks the rank is done: it will touch no other rank's slot in them, and
///   what it had to write there is there.
///
/// Rules:
/// 1. A rank writes into its own slot for block b (without being told to by the collective's own
///    order) only when every rank is done with block b - buffers().
/// 2. A rank publishes at most one block ahead: whoever publishes block b is done with all blocks
///    before b - 1. Seeing that all have published b is therefore as good as seeing that all are
///    done with b - 2, and rule 1 for block b + 1 costs no further look at anybody's flags. A
///    collective in which every rank publishes each block, waits for every other rank's, and reads,
///    lives on this alone and need not post `done` (oneshot, slots).
/// 3. Any other collective opens and closes with post_done(), which catches up on what rule 2 left
///    unposted, and posts done for each block (push, broadcast).
/// 4. A collective that reserves blocks uses all of them, on all ranks, whatever its counts.
///
/// The lines of HostMemory have a count of their own, HostMemory::sequence(kLineSequence): message
/// q lies in line(q % 2). Every message is from every rank to every rank, so whoever sees all of q
/// - 1 knows that q - 2 has been read, and may overwrite it. Barriers have a flag of their own.
enum SlotFlag : int {
  kPublishedFlag = 0,
  kDoneFlag = 1,
  kBarrierFlag = 2,
  kPlacesFlag = 3,  ///< so many announcements of "direct", for those who have gone to sleep
};

/// Indices of HostMemory::sequence().
enum SlotSequence : int {
  kNextBlock = 0,      ///< first block that no collective has reserved
  kRetiredBlocks = 1,  ///< all ranks are known to be done with so many
  kBarrierSequence = 2,
  kLineSequence = 3,
  kShownBlocks = 4,  ///< as many as both flags have shown at least
  kPlacesSequence = 5,
};

/// The blocks of one collective: reserves them on construction, which every rank does in the same
/// order with the same number. Blocks are named 0 .. blocks-1 here. Every wait returns as
/// HostMemory::wait_at_least does. Thread-compatible.
class SlotBlocks {
 public:
  SlotBlocks(HostMemory& memory, std::uint64_t blocks, Deadline deadline)
      : memory_(memory), first_(memory.sequence(kNextBlock)), deadline_(deadline) {
    memory.sequence(kNextBlock) += blocks;
    if (first_ - memory.sequence(kShownBlocks) >= kLongestSilence) [[unlikely]]
      show_all();
  }

  std::byte* slot(std::uint64_t block, Rank owner) const {
    return memory_.slot(static_cast<int>((first_ + block) % memory_.buffers()), owner);
  }

  /// More blocks for a collective that learns from the first ones how many it takes.
  void extend(std::uint64_t blocks) { memory_.sequence(kNextBlock) += blocks; }

  /// Blocks until this rank's slot may be written.
  Status await_writable(std::uint64_t block) {
    const std::uint64_t end = first_ + block + 1;
    const auto buffers = static_cast<std::uint64_t>(memory_.buffers());
    if (end <= buffers + memory_.sequence(kRetiredBlocks)) [[likely]]
      return {};
    ALLRING_RETURN_IF_ERROR(await_all(kDoneFlag, end - buffers));
    learn_retired(end - buffers);
    return {};
  }

  /// Own slot holds its content.
  void publish(std::uint64_t block) { post(kPublishedFlag, block); }

  Status await_published(std::uint64_t block, Rank owner) {
    return memory_.wait_at_least(kPublishedFlag, owner,
                                 static_cast<std::uint32_t>(first_ + block + 1), deadline_);
  }
  Status await_all_published(std::uint64_t block) {
    ALLRING_RETURN_IF_ERROR(await_all(kPublishedFlag, first_ + block + 1));
    if (first_ + block > 0) learn_retired(first_ + block - 1);  // rule 2
    return {};
  }

  /// This rank is done with the block and all before it.
  void done(std::uint64_t block) { post(kDoneFlag, block); }
  /// Opens a collective that posts done() (rule 3): nothing before it is in use any more.
  void open() { memory_.post(kDoneFlag, static_cast<std::uint32_t>(first_)); }

  Status await_all_done(std::uint64_t block) {
    ALLRING_RETURN_IF_ERROR(await_all(kDoneFlag, first_ + block + 1));
    learn_retired(first_ + block + 1);
    return {};
  }

 private:
  // Flags are compared by wrap-around arithmetic, so one that the latest collectives did not need
  // must not stay 2^31 behind. Here this rank is done with all that came before.
  static constexpr std::uint64_t kLongestSilence = std::uint64_t{1} << 30;
  void show_all() {
    memory_.post(kPublishedFlag, static_cast<std::uint32_t>(first_));
    memory_.post(kDoneFlag, static_cast<std::uint32_t>(first_));
    memory_.sequence(kShownBlocks) = first_;
  }

  void post(int flag, std::uint64_t block) {
    memory_.post(flag, static_cast<std::uint32_t>(first_ + block + 1));
  }
  void learn_retired(std::uint64_t blocks) {
    std::uint64_t& known = memory_.sequence(kRetiredBlocks);
    if (blocks > known) known = blocks;
  }
  Status await_all(int flag, std::uint64_t count) {
    for (Rank rank = 0; rank < memory_.ranks(); ++rank) {
      if (rank == memory_.rank()) continue;
      ALLRING_RETURN_IF_ERROR(
          memory_.wait_at_least(flag, rank, static_cast<std::uint32_t>(count), deadline_));
    }
    return {};
  }

  HostMemory& memory_;
  const std::uint64_t first_;
  const Deadline deadline_;
};

}  // namespace allring
