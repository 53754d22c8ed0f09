#pragma once

#include <cstddef>

#include "collectives/transport/group.h"

namespace allring {

/// The first cost model: microseconds from latency (alpha), bytes moved (beta) and bytes added
/// (gamma), after Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994),
/// with the extra messages of one step as in LogP (Culler et al., PPoPP 1993). All constants live
/// in cost_model.cc. Estimates need only be right enough to order the rows, and they must be equal
/// on all ranks: they know sizes and topology, never this process's measurements.

/// What a message through Group::transport() costs: by medium, in process or unix sockets within a
/// host and TCP between hosts, whichever is the slowest the group uses.
struct MessageCost {
  double alpha_us;     ///< from post_send here to the end of wait there, no payload
  double overhead_us;  ///< per further message that is under way at the same time
  double us_per_byte;  ///< for what leaves one rank; between hosts, one host
  int ranks_per_host;  ///< between hosts: how many share us_per_byte. 1 within a host.
};
MessageCost message_cost(const Group& group);

/// What HostMemory costs.
struct MemoryCost {
  double line_us;      ///< one rank sees what another wrote into a line
  double flag_us;      ///< the same with a flag: two lines
  double us_per_byte;  ///< one rank reads what another wrote, and adds it to its own
};
MemoryCost memory_cost(const Group& group);

/// Adding what has been received, per byte of it.
inline constexpr double kReduceUsPerByte = 1.0 / 20e3;

}  // namespace allring
