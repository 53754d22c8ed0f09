#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/base/clock.h"

namespace allring {

// What a driver and an agent agree upon besides agent.proto.

/// The line that an agent writes to its standard output before gRPC's bytes begin; whatever a
/// login shell printed before it is passed over. The number changes with agent.proto.
inline constexpr std::string_view kAgentMarker = "\nallring-agent-ready 1\n";
/// What an agent of another version begins its marker with.
inline constexpr std::string_view kAnyAgentMarker = "\nallring-agent-ready ";
/// Written instead by the remote command where there is no hvdrun.
inline constexpr std::string_view kAgentMissingMarker = "\nallring-agent-missing\n";

/// Output that may be under way from one host before the driver has written it out. Bounds the
/// memory of a job whose output nobody reads, and keeps the stream free for everything else.
inline constexpr std::int64_t kOutputWindowBytes = 4 << 20;
/// The same for standard input, towards rank 0.
inline constexpr std::int64_t kInputWindowBytes = 256 << 10;

inline constexpr seconds kHeartbeatInterval{5};
/// A host that is silent for so long counts as lost: the job ends.
inline constexpr seconds kAgentSilence{30};
/// And an agent that has heard nothing from its driver for so long ends its ranks. Longer, so that
/// the driver's account of what happened comes first.
inline constexpr seconds kDriverSilence{60};

}  // namespace allring
