#pragma once

#include <optional>
#include <vector>

#include "collectives/base/types.h"

namespace allring {

/// The place of one rank in a binomial tree.
struct TreePlace {
  std::optional<Rank> parent;  ///< none for the root
  /// In the order in which a broadcast serves them: the one with the largest subtree first.
  std::vector<Rank> children;
};

/// Binomial tree over all ranks with any root; depth ceil(log2 size), which is also the most
/// children a rank has. Ranks are numbered from the root upwards, modulo size; a rank's parent is
/// its number without the lowest set bit. Thakur, Rabenseifner and Gropp, "Optimization of
/// collective communication operations in MPICH", IJHPCA 19 (2005), section 4.2 (broadcast of short
/// messages). REQUIRES: 0 <= rank, root < size.
TreePlace binomial_tree(Rank rank, int size, Rank root);

/// Whom a rank signals, and whom it waits for, in one step of a dissemination barrier.
struct DisseminationStep {
  Rank send_to = 0;
  Rank recv_from = 0;
};

/// ceil(log2 size).
int dissemination_steps(int size);

/// Step `step`: 2^step up and down, modulo size. After the last step every rank has heard, directly
/// or not, from every other. Hensgen, Finkel and Manber, "Two algorithms for barrier
/// synchronization", Int. J. Parallel Programming 17 (1988) 1-17: the dissemination algorithm.
///
/// REQUIRES: 0 <= rank < size, 0 <= step < dissemination_steps(size).
DisseminationStep dissemination_step(Rank rank, int size, int step);

}  // namespace allring
