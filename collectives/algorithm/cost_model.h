#pragma once

#include "collectives/transport/group.h"

namespace allring {

/// The first cost model: microseconds from latency (alpha), bytes moved (beta) and bytes added
/// (gamma), after Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994),
/// with the extra messages of one step as in LogP (Culler et al., PPoPP 1993). The parameters are
/// Group::costs(), measured once per cluster or built in. Estimates need only be right enough to
/// order the rows, and they must be equal on all ranks: they know parameters, sizes and topology,
/// never this process's own measurements.

/// What a message through Group::transport() costs: by medium, in process or unix sockets within a
/// host and TCP between hosts, whichever is the slowest the group uses.
struct MessageCost : CostParameters::Messages {
  int ranks_per_host;  ///< between hosts: how many share us_per_byte. 1 within a host.
};
MessageCost message_cost(const Group& group);

/// What HostMemory costs.
using MemoryCost = CostParameters::Memory;
inline const MemoryCost& memory_cost(const Group& group) { return group.costs().host_memory; }

/// Adding what has been received, per byte of it.
inline double reduce_us_per_byte(const Group& group) { return group.costs().reduce_us_per_byte; }

}  // namespace allring
