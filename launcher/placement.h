#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/base/status.h"
#include "launcher/hosts.h"

namespace allring {

/// A rank's numbers within its host (local) and among the ranks of the same local number (cross).
struct PlacedRank {
  int rank = 0;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
};

struct PlacedHost {
  Host host;
  std::vector<PlacedRank> ranks;  ///< ascending, at least one
};

/// Which rank runs where. Hosts without ranks are left out.
struct Placement {
  int size = 0;
  std::vector<PlacedHost> hosts;

  /// One line per rank: "rank 2: h1, local 0 of 2, cross 1 of 2".
  std::string to_string() const;
};

/// Places ranks in blocks: the first host is filled before the second is begun.
/// @param size how many ranks; without it all slots are filled.
/// @param oversubscribe lets hosts take more ranks than slots, up to their max_slots; what exceeds
///        the slots is dealt out evenly.
/// @return kInvalidArgument if there are too few slots, with what to do.
Result<Placement> place(const std::vector<Host>& hosts, std::optional<int> size,
                        bool oversubscribe);

}  // namespace allring
