#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/algorithm/catalog.h"
#include "test/harness/run_ranks.h"

namespace allring::test {

/// A way in which the ranks of one host reach each other.
struct Column {
  std::string_view name;
  Medium medium;
  bool host_memory;
};
inline constexpr Column kColumns[] = {
    {"inproc", Medium::kInproc, false}, {"rendezvous", Medium::kInprocRendezvous, false},
    {"shm", Medium::kShm, false},       {"unix", Medium::kUnixSockets, false},
    {"tcp", Medium::kTcp, false},       {"host_memory", Medium::kInproc, true},
};
/// One host with 1..8 ranks.
std::vector<Cluster> clusters_of(const Column& column);

/// Everybody's elements of each dtype, as long as the longest vector of the matrix: shorter ones
/// are their first elements.
inline constexpr std::size_t kMostElements = 65537;
const std::vector<std::byte>& elements(DataType dtype, Rank rank);

/// Under the sanitizers, some.
std::vector<DataType> all_data_types();
/// 0, 1, n - 1, n, n + 1, 1000 and 65537, each once.
std::vector<std::size_t> awkward_counts(int size);
/// Counts per rank for vectors with about `count` elements: even, all with one rank, and uneven
/// with some ranks that have nothing.
std::vector<std::vector<std::size_t>> awkward_splits(std::size_t count, int size);

/// The rows of a kind that can run on `cluster`, apart from those that a cluster of one host
/// without shared memory can run as well, if this one has it: they are in another column.
std::vector<const Algorithm*> rows_of(CollectiveKind kind, const Cluster& cluster);

/// A buffer that ends where its bytes end, for the sanitizer, and starts as misaligned as elements
/// of the dtype may be.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t misalignment);
  Buffer(const std::byte* content, std::size_t bytes, std::size_t misalignment);
  std::byte* data() { return bytes_.data() + misalignment_; }
  std::size_t size() const { return bytes_.size() - misalignment_; }
  std::uint64_t hash() const;

 private:
  std::vector<std::byte> bytes_;
  std::size_t misalignment_;
};

/// Runs cases 0 .. cases-1 one after the other on the ranks of `cluster`. `run_case` does one on
/// one rank and returns a fingerprint of the result, which must be equal on all ranks, or what is
/// wrong.
/// @return "" or the failures. `describe` names a case.
std::string run_cases(const Cluster& cluster, std::size_t cases,
                      const std::function<Result<std::uint64_t>(Group&, std::size_t)>& run_case,
                      const std::function<std::string(std::size_t)>& describe);

}  // namespace allring::test
