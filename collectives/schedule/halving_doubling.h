#pragma once

#include <vector>

#include "collectives/base/types.h"

namespace allring {

/// Consecutive chunks, begin inclusive, end exclusive.
struct ChunkRun {
  int begin = 0;
  int end = 0;
  bool operator==(const ChunkRun&) const = default;
};

/// One exchange with a partner.
struct HalvingStep {
  Rank peer = 0;
  int distance = 0;  ///< between the two among the ranks that take part: size/2, size/4, ..., 1
  ChunkRun send;
  ChunkRun recv;
};

/// Allreduce (or its halves) by recursive halving and doubling, for latency between the tree's and
/// bandwidth like the ring's: 2 log2(n) steps, 2 S (n - 1) / n bytes sent per rank.
/// Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH",
/// IJHPCA 19 (2005), sections 4.4 (reduce-scatter by halving) and 4.5 (Rabenseifner's allreduce,
/// with the folding for sizes that are no power of two).
///
/// With p the largest power of two <= size, the vector is split into p chunks. The first 2 (size -
/// p) ranks pair up, and the even one of each pair folds in: before everything it gives the whole
/// vector to its odd neighbour, which adds it, and after everything it gets the result from
/// there; it takes no part in between.
struct HalvingDoubling {
  enum class Fold {
    kNone,       ///< takes part alone
    kGivesAway,  ///< sends its input to fold_peer at first, receives the result at last
    kTakesIn,    ///< receives and adds fold_peer's input at first, sends it the result at last
  };

  int chunks = 1;  ///< p
  Fold fold = Fold::kNone;
  Rank fold_peer = -1;  ///< -1 for kNone
  /// The chunk that is complete here after halving; -1 for kGivesAway.
  int own_chunk = -1;
  /// Reduce-scatter, in order: send partial sums of `send`, receive those of `recv` and add them;
  /// the runs are the halves of what the step before received. Empty for kGivesAway.
  std::vector<HalvingStep> halving;
  /// Allgather, in order: send the complete chunks `send`, receive `recv`. The same partners,
  /// nearest first.
  std::vector<HalvingStep> doubling;
};

/// The plan of one rank. REQUIRES: 0 <= rank < size.
HalvingDoubling halving_doubling(Rank rank, int size);

}  // namespace allring
