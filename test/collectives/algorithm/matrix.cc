#include "test/collectives/algorithm/matrix.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "collectives/transport/heap_host_memory.h"
#include "collectives/transport/inproc.h"
#include "test/harness/reference.h"

namespace allring::test {

std::vector<Cluster> clusters_of(const Column& column) {
  std::vector<Cluster> clusters;
  // One rank runs only what needs neither network nor shared memory.
  for (int size = column.medium == Medium::kInproc && !column.host_memory ? 1 : 2; size <= 8;
       ++size)
    clusters.push_back(Cluster::one_host(size, column.medium, column.host_memory));
  return clusters;
}

const std::vector<std::byte>& elements(DataType dtype, Rank rank) {
  static const auto made = [] {
    std::map<std::pair<DataType, Rank>, std::vector<std::byte>> all;
    for (DataType each : all_data_types()) {
      for (Rank owner = 0; owner < 8; ++owner)
        all[{each, owner}] = tame_elements(each, kMostElements, owner, 1);
    }
    return all;
  }();
  return made.at({dtype, rank});
}

std::vector<DataType> all_data_types() {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  // One of each width, integer and float: the sanitizers watch the rows, not the kernels.
  return {DataType::kUint8, DataType::kFloat16, DataType::kFloat32, DataType::kInt64};
#endif
  std::vector<DataType> result;
  for (int value = 0; value < kDataTypeCount; ++value)
    result.push_back(static_cast<DataType>(value));
  return result;
}

std::vector<std::size_t> awkward_counts(int size) {
  const auto n = static_cast<std::size_t>(size);
  const std::set<std::size_t> counts{0, 1, n - 1, n, n + 1, 1000, kMostElements};
  return {counts.begin(), counts.end()};
}

std::vector<std::vector<std::size_t>> awkward_splits(std::size_t count, int size) {
  const auto n = static_cast<std::size_t>(size);
  std::vector<std::vector<std::size_t>> splits;
  std::vector<std::size_t> even(n, count / n);
  for (std::size_t rank = 0; rank < count % n; ++rank) ++even[rank];
  splits.push_back(even);
  if (size == 1 || count == 0) return splits;
  std::vector<std::size_t> one(n, 0);
  one[n / 2] = count;
  splits.push_back(one);
  std::vector<std::size_t> uneven(n, 0);
  std::size_t rest = count;
  for (std::size_t rank = 0; rank < n; ++rank) {
    uneven[rank] = rank + 1 == n ? rest : rank % 3 == 1 ? 0 : rest / 2 + rank % 2;
    uneven[rank] = std::min(uneven[rank], rest);
    rest -= uneven[rank];
  }
  splits.push_back(uneven);
  return splits;
}

std::vector<const Algorithm*> rows_of(CollectiveKind kind, const Cluster& cluster) {
  const Topology topology(cluster.host_of);
  InprocNetwork network(topology.size());
  Group plain(topology, network.transport(0), nullptr);
  std::vector<std::unique_ptr<HostMemory>> memory;
  if (cluster.host_memory) {
    HostMemory::Shape shape = cluster.shape;
    shape.ranks = topology.local_size(0);
    memory = make_heap_host_memory(shape, {});
  }
  Group group(topology, network.transport(0),
              cluster.host_memory && topology.hosts() == 1 ? memory[0].get() : nullptr);
  build_hierarchy(group, cluster.host_memory ? memory[0].get() : nullptr);

  // Of a dtype and length that all rows take.
  const std::vector<std::size_t> counts(topology.size(), 0);
  CollectiveArgs args;
  args.kind = kind;
  args.reduction.dtype = DataType::kInt32;
  args.counts = args.recv_counts = counts;
  std::vector<const Algorithm*> rows;
  for (const Algorithm& row : algorithms(kind)) {
    if (!row.supports(args, group)) continue;
    if (cluster.host_memory && row.supports(args, plain)) continue;
    rows.push_back(&row);
  }
  return rows;
}

Buffer::Buffer(std::size_t bytes, std::size_t misalignment)
    : bytes_(bytes + misalignment, std::byte(0x5a)), misalignment_(misalignment) {}

Buffer::Buffer(const std::byte* content, std::size_t bytes, std::size_t misalignment)
    : Buffer(bytes, misalignment) {
  std::copy_n(content, bytes, data());
}

std::uint64_t Buffer::hash() const {
  return std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(bytes_.data()) + misalignment_, size()});
}

std::string run_cases(const Cluster& cluster, std::size_t cases,
                      const std::function<Result<std::uint64_t>(Group&, std::size_t)>& run_case,
                      const std::function<std::string(std::size_t)>& describe) {
  const std::size_t size = cluster.host_of.size();
  std::vector<std::vector<std::uint64_t>> fingerprints(size, std::vector<std::uint64_t>(cases));
  const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
    for (std::size_t index = 0; index < cases; ++index) {
      Result<std::uint64_t> fingerprint = run_case(group, index);
      if (!fingerprint.ok()) return fingerprint.status().with_prefix(describe(index) + ": ");
      fingerprints[group.rank()][index] = *fingerprint;
    }
    return {};
  });
  std::string problems = failures(statuses);
  if (!problems.empty()) return problems;
  for (std::size_t rank = 1; rank < size; ++rank) {
    for (std::size_t index = 0; index < cases; ++index) {
      if (fingerprints[rank][index] != fingerprints[0][index])
        return describe(index) + ": ranks 0 and " + std::to_string(rank) + " have different bits";
    }
  }
  return {};
}

}  // namespace allring::test
