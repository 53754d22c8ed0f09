#include "benchmarks/bench/turns.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "benchmarks/bench/timing.h"

namespace allring::bench {

namespace {

// Longer than any waiting thread of ours spins.
constexpr std::chrono::milliseconds kRest{1};

}  // namespace

Status sample_in_turns(std::span<Entrant> entrants, int iterations) {
  const int several = static_cast<int>(entrants.size());
  const int rounds = several == 1 ? 1 : std::min(iterations, kRounds);
  for (int round = 0; round < rounds; ++round) {
    for (int place = 0; place < several; ++place) {
      Entrant& entrant = entrants[static_cast<std::size_t>(whose_turn(several, round, place))];
      if (several > 1) {
        std::this_thread::sleep_for(kRest);
        ALLRING_RETURN_IF_ERROR(entrant.sample().status());
      }
      for (int i = 0; i < samples_in_block(iterations, rounds, round); ++i) {
        ALLRING_ASSIGN_OR_RETURN(const double us, entrant.sample());
        entrant.samples.push_back(us);
      }
    }
  }
  return {};
}

}  // namespace allring::bench
