#pragma once

#include <string>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/options.h"
#include "collectives/base/status.h"
#include "collectives/transport/cost_parameters.h"
#include "collectives/transport/peer_info.h"
#include "runtime/rendezvous/store_client.h"

namespace allring {

/// How the ranks of a job learn of each other once they share a store. Each rank but the first puts
/// "peer/<rank>": who it is, with a number that it has drawn. Rank 0 takes these, compares what
/// must be equal on all ranks, puts "peers", the list of all, and answers each under
/// "welcome/<rank>/<number>", which is its word that the list is of this meeting and not of a
/// former one in the same store; or it answers all who have come with one reason why there is none.
struct Introduction {
  PeerInfo self;
  int size = 1;
  /// What must be equal on all ranks: this program's version, the options that say so, and the
  /// parameters of the cost model.
  std::string settings;
  /// For messages: "torchrun".
  std::string starter;
  nanoseconds start_timeout = seconds(30);
  /// Rank 0 serves the store and closes it after introduce(): it stays until the others, who put
  /// "joined/<rank>" when they leave, have read what they need.
  bool store_closes = false;

  /// Lines "NAME=value" for `settings`.
  static std::string settings_of(const Options& options, const CostParameters& costs);
};

/// Blocks until all ranks have called it. @return everyone's info, by rank; kTimedOut naming the
/// ranks that did not come, kMismatch naming the first rank and setting that differ, both the same
/// on every rank that rank 0 could answer; kPeerLost if the store is gone.
Result<std::vector<PeerInfo>> introduce(StoreClient& store, const Introduction& mine,
                                        Deadline deadline);

/// "rank 3", "ranks 1, 2 and 5", "ranks 1, 2, .. (40 in all)".
std::string name_ranks(const std::vector<Rank>& ranks);

}  // namespace allring
