#include "benchmarks/bench/timing.h"

#include <algorithm>
#include <chrono>

namespace allring::bench {

Timing summarise(std::vector<double>& samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  const double median =
      samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {samples.front(), median, samples.back()};
}

double ratio_of_medians(const Timing& peer, const Timing& ours) {
  return ours.median_us > 0 ? peer.median_us / ours.median_us : 0;
}

int samples_in_block(int total, int blocks, int block) {
  return total * (block + 1) / blocks - total * block / blocks;
}

int whose_turn(int contestants, int round, int place) {
  return round % 2 == 0 ? place : contestants - 1 - place;
}

double now_us() {
  using std::chrono::duration;
  return duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace allring::bench
