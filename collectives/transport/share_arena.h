#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/arena.h"
#include "collectives/transport/endpoint.h"

namespace allring {

/// The arena of the ranks of one host, as share_segment() shares it: address space only, no memory
/// yet.
/// @return null where they go without.
Result<std::shared_ptr<Arena>> share_arena(Endpoint& endpoint, std::uint32_t channel,
                                           const std::vector<Rank>& members,
                                           std::size_t bytes_per_rank, Deadline deadline);

}  // namespace allring
