#pragma once

#include <span>
#include <string>
#include <vector>

#include "benchmarks/bench/arguments.h"
#include "benchmarks/bench/contestant.h"
#include "benchmarks/bench/timing.h"

namespace allring::bench {

/// One contestant at one size, either in place or out of place.
struct Measurement {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::string impl = "allring";
  std::string layer;
  std::string algorithm;
  bool in_place = false;
  std::string buffers = "private";
  std::size_t bytes = 0;
  std::size_t count = 0;
  Timing time;
  std::int64_t wrong = -1;  ///< elements that differ on any rank; -1: not checked

  /// Bytes per second through the call: S / t.
  double algbw_gbps() const;
  /// What each link must have carried, comparable between sizes of job: algbw · 2(n−1)/n for
  /// allreduce, (n−1)/n for allgather, reduce_scatter and alltoall, 1 for broadcast.
  double busbw_gbps(int size) const;
};

/// Whether a collective has an in-place form (input and output are the same memory).
bool has_in_place(CollectiveKind kind);

/// Runs warm-up, check and timed calls of one size on all ranks together, for all contestants on
/// the same ranks and the same memory. One Measurement for each, in their order.
///
/// From 16 KiB up every rank rewrites its input before each timed call ("fresh"): otherwise the
/// data would still lie in the cache of whoever reduced them. Below that, calls are too short for
/// a clock each and a sample is the mean of kCallsPerSample of them.
///
/// Several contestants take turns (sample_in_turns()). All samples start at the last contestant's
/// barrier, whoever is measured.
Result<std::vector<Measurement>> measure(std::span<Contestant* const> contestants,
                                         const Arguments& arguments, std::size_t bytes,
                                         bool in_place);

}  // namespace allring::bench
