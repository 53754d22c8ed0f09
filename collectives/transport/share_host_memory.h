#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/host_memory.h"

namespace allring {

/// Slots are not made smaller than this for lack of memory.
inline constexpr std::size_t kLeastSlotBytes = 16 * 1024;

/// Makes one HostMemory for the ranks of one host. Called by all of them, with equal arguments;
/// blocks until all have it or all know that there will be none.
///
/// The first of them reserves the memory and passes it to the others over unix sockets; if there is
/// not enough for `shape`, it halves the slots down to kLeastSlotBytes. If that fails too, or if
/// one of them cannot map it, all go without, and the first one logs one warning.
///
/// @param channel the lane's channel. The connections for this have a channel of their own, derived
/// from it.
/// @param members world ranks with the same host_key, ascending, this rank among them;
///        HostMemory numbers them 0, 1, ..
/// @param shape ranks is set from `members`.
/// @return null where they go without (also if one of them has shared memory switched off, or is
///         alone); kPeerLost, kTimedOut or the endpoint's abort reason.
Result<std::unique_ptr<HostMemory>> share_host_memory(Endpoint& endpoint, std::uint32_t channel,
                                                      const std::vector<Rank>& members,
                                                      HostMemory::Shape shape, WaitPolicy policy,
                                                      Deadline deadline);

}  // namespace allring
