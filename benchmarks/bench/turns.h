#pragma once

#include <functional>
#include <span>
#include <vector>

#include "collectives/base/status.h"

namespace allring::bench {

/// Somebody who is measured in turns with others.
struct Entrant {
  /// Takes one sample, in microseconds, of this rank.
  std::function<Result<double>()> sample;
  std::vector<double> samples = {};
};

/// Takes `iterations` samples of each, in at most kRounds rounds of short blocks. Every other round
/// goes backwards. Where there are several, all ranks sleep for a moment before a block, in which
/// the others' threads come to rest, and take one sample that does not count.
Status sample_in_turns(std::span<Entrant> entrants, int iterations);

inline constexpr int kRounds = 10;

}  // namespace allring::bench
