#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/segment.h"

namespace allring {

/// Memory and what the rank that made it wants the others to know about it.
struct SharedSegment {
  std::shared_ptr<Segment> segment;  ///< null: there is none
  std::uint64_t note = 0;
};

/// Shares memory among the ranks of one host: the first of them makes it and passes it to the
/// others over unix sockets; if it cannot, or one of them cannot map it, all go without, and the
/// first one logs one warning. Called by all of them, with equal arguments; blocks until all have
/// it or all know that there will be none.
///
/// @param channel connections for this have a channel of their own, derived from it.
/// @param members world ranks with the same host_key, ascending, this rank among them.
/// @param without what the warning says is missing then.
/// @param make called on the first rank only.
/// @return without a segment also where one of them has shared memory switched off, or is alone;
///         kPeerLost, kTimedOut or the endpoint's abort reason.
Result<SharedSegment> share_segment(Endpoint& endpoint, std::uint32_t channel,
                                    const std::vector<Rank>& members, std::string_view without,
                                    const std::function<Result<SharedSegment>()>& make,
                                    Deadline deadline);

}  // namespace allring
