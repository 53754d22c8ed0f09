#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "benchmarks/bench/contestant.h"
#include "collectives/base/status.h"

namespace allring::bench {

/// One of two processes that share memory and do the same steps in turns.
class Pair {
 public:
  /// Shared by both, at the start of the mapping.
  struct Head {
    alignas(64) std::atomic<std::uint64_t> arrived[2][8];
    alignas(64) double value[2][8];
    alignas(64) std::atomic<std::uint32_t> word;  ///< for whoever measures signals
  };

  /// @param shared a mapping of kHeadBytes + bytes that began as zeros; unmapped at the end.
  Pair(std::byte* shared, std::size_t bytes, int side);
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair();

  static constexpr std::size_t kHeadBytes = 4096;

  int side() const { return side_; }  ///< 0 or 1
  std::byte* memory() { return shared_ + kHeadBytes; }
  std::size_t bytes() const { return bytes_; }
  Head& head() { return *reinterpret_cast<Head*>(shared_); }

  /// Returns when both have called it. @return kTimedOut if the other does not come.
  Status meet();
  /// Both get the greater of the two values.
  Result<double> greater(double mine);
  Result<double> sum(double mine);

 private:
  Result<double> other(double mine);

  std::byte* shared_;
  std::size_t bytes_;
  int side_;
  std::uint64_t met_ = 0;
};

/// Runs `both` in this process (side 0) and in a child (side 1), each on a core of its own where
/// there are two. To be called before any thread is made. @return the first failure of this side,
/// or that of the other.
Status run_as_pair(std::size_t bytes, const std::function<Status(Pair&)>& both);

/// The ranks 0 and 1 as a pair, if they share a host and memory; else, and on other ranks, null.
/// Collective.
Result<std::unique_ptr<Pair>> pair_of_ranks(Contestant& ranks, std::size_t bytes);

}  // namespace allring::bench
