#pragma once

#include <vector>

namespace allring::bench {

/// Over the samples, each of them the slowest rank's.
struct Timing {
  double min_us = 0;
  double median_us = 0;
  double max_us = 0;
};

/// @param samples not empty; gets sorted.
Timing summarise(std::vector<double>& samples);

/// How much faster ours is: the peer's median over ours. 0 where ours was too fast for the clock.
double ratio_of_medians(const Timing& peer, const Timing& ours);

/// How many of `total` samples belong to block `block` of `blocks`, as even as can be.
int samples_in_block(int total, int blocks, int block);

/// Whose turn it is: `contestants` take turns, and every other round goes backwards, so that a
/// drift of the machine hits all alike.
int whose_turn(int contestants, int round, int place);

/// Microseconds of a steady clock.
double now_us();

}  // namespace allring::bench
