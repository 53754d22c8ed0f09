#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectives/base/types.h"
#include "runtime/request/request.h"

namespace allring {

/// Whether two ranks that submitted these under one name mean the same collective. What may differ
/// between ranks: the first dimension of allgather and alltoall, the splits of alltoall, and which
/// device of its own a rank uses.
bool agree(const Request& one, const Request& other);

/// What some ranks submitted alike.
struct Faction {
  Request request;          ///< of the first of them
  std::vector<Rank> ranks;  ///< ascending
};

/// The error that every rank gets: allreduce "layer1.weight": ranks 0,1,3 submitted float32
/// [64,64], rank 2 float32 [64,32]. Each faction is named once, with its dtype and shape and with
/// all else in which they differ. REQUIRES: two factions or more.
/// @param members members[i] is the rank in the job of the group's rank i.
std::string mismatch_text(std::span<const Faction> factions, std::span<const Rank> members);

}  // namespace allring
