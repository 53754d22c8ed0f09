// With DETERMINISTIC the runtime gives one tensor the same bits alone, fused with others, padded,
// on any lane, with any algorithm, and over any hosts.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "collectives/kernels/reduce.h"
#include "test/runtime/harness/inproc_job.h"

namespace allring::test {
namespace {

constexpr std::int64_t kCount = 1201;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kMostRanks = 3;  // the sanitizers watch the threads
#else
constexpr int kMostRanks = 5;
#endif
constexpr DataType kFloats[] = {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32,
                                DataType::kFloat64};

std::vector<std::byte> telling_elements(DataType dtype, Rank rank, std::int64_t count) {
  std::mt19937 random(7 + rank);
  std::uniform_real_distribution<double> mantissa(-1, 1);
  std::vector<double> values(count);
  for (double& value : values)
    value = std::ldexp(mantissa(random), static_cast<int>(random() % 16) - 8);
  const std::vector<float> singles(values.begin(), values.end());
  std::vector<std::byte> bytes(count * element_bytes(dtype));
  auto* halves = reinterpret_cast<std::uint16_t*>(bytes.data());
  if (dtype == DataType::kFloat64) std::memcpy(bytes.data(), values.data(), bytes.size());
  if (dtype == DataType::kFloat32) std::memcpy(bytes.data(), singles.data(), bytes.size());
  if (dtype == DataType::kFloat16) float32_to_float16(halves, singles.data(), count);
  if (dtype == DataType::kBfloat16) float32_to_bfloat16(halves, singles.data(), count);
  return bytes;
}

Request request_for(CollectiveKind kind, const std::string& name, DataType dtype,
                    std::int64_t count) {
  Request request = float_request(kind, name, count);
  request.dtype = dtype;
  request.op = ReduceOp::kAverage;
  request.prescale = 0.7;
  request.postscale = 1.1;
  return request;
}

/// The first kCount elements of the averages of all float dtypes, one after the other. `copies` of
/// each are in flight at once, `padding` elements longer than needed; all must have the same bits.
std::string averages(InprocJob& job, int copies, std::int64_t padding, bool scatters) {
  std::mutex mutex;
  std::map<std::string, int> results;
  job.on_each([&](Rank rank) {
    std::vector<std::vector<std::byte>> inputs, outputs;
    std::vector<std::future<Completion>> futures;
    for (const DataType dtype : kFloats)
      inputs.push_back(telling_elements(dtype, rank, kCount + padding));
    for (int copy = 0; copy < copies; ++copy) {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const CollectiveKind kind =
            scatters ? CollectiveKind::kReduceScatter : CollectiveKind::kAllreduce;
        const std::string name = std::to_string(copy) + "." + std::to_string(i);
        futures.push_back(submit(job.set(rank),
                                 request_for(kind, name, kFloats[i], kCount + padding),
                                 inputs[i].data(), nullptr));
      }
    }
    std::vector<std::string> bits(copies);
    for (std::size_t i = 0; i < futures.size(); ++i) {
      const DataType dtype = kFloats[i % inputs.size()];
      const Completion completion = await(futures[i]);
      std::string& text = bits[i / inputs.size()];
      if (!completion.status.ok()) {
        text += completion.status.to_string();
        continue;
      }
      const std::int64_t kept = scatters ? completion.shape[0] : kCount;
      text.append(reinterpret_cast<const char*>(completion.allocated.get()),
                  static_cast<std::size_t>(kept) * element_bytes(dtype));
    }
    std::lock_guard lock(mutex);
    // Each rank keeps another part of a reduce_scatter.
    for (const std::string& text : bits) ++results[scatters ? std::to_string(rank) + text : text];
  });
  const std::size_t expected = scatters ? job.size() : 1;
  if (results.size() != expected) return "ranks or copies differ";
  std::string all;
  for (const auto& [text, times] : results) all += text;
  return all;
}

Options deterministic() {
  Options options;
  options.deterministic = true;
  return options;
}

std::string averages_with(const Topology& topology, const Options& options, int copies,
                          std::int64_t padding, bool scatters = false) {
  InprocJob job(topology, options);
  return averages(job, copies, padding, scatters);
}

std::vector<Topology> topologies_of(int size) {
  std::vector<Topology> topologies = {Topology::single_host(size)};
  std::vector<std::string> hosts(size, "a");
  for (int rank = (size + 1) / 2; rank < size; ++rank) hosts[rank] = "b";
  topologies.emplace_back(hosts);
  return topologies;
}

}  // namespace

TEST_CASE("the same bits whatever the fusion, padding, lanes, algorithm and hosts") {
  for (int size = 2; size <= kMostRanks; ++size) {
    const std::string expected = averages_with(Topology::single_host(size), deterministic(), 1, 0);
    for (const Topology& topology : topologies_of(size)) {
      INFO(size << " ranks on " << topology.hosts() << " hosts");
      for (const char* algorithm : {"", "line", "oneshot", "push", "ring", "pairwise"}) {
        Options options = deterministic();
        options.algorithm = algorithm;
        INFO("algorithm \"" << algorithm << '"');
        CHECK(averages_with(topology, options, 8, 0) == expected);
        CHECK(averages_with(topology, options, 1, 333) == expected);
      }
      Options sockets = deterministic();
      sockets.shared_memory = false;
      CHECK(averages_with(topology, sockets, 5, 1) == expected);
      Options unfused = deterministic();
      unfused.fusion_threshold_bytes = 0;
      unfused.lanes = 3;
      CHECK(averages_with(topology, unfused, 8, 0) == expected);
      Options odd = deterministic();
      odd.fusion_threshold_bytes = 3 * kCount * 4 + 5;
      odd.lanes = 2;
      CHECK(averages_with(topology, odd, 8, 70000) == expected);
    }
  }
}

TEST_CASE("reduce_scatter has the same bits whatever carries it") {
  for (int size = 2; size <= kMostRanks; ++size) {
    const std::string expected =
        averages_with(Topology::single_host(size), deterministic(), 1, 0, true);
    for (const Topology& topology : topologies_of(size)) {
      for (const char* algorithm : {"", "slots", "ring", "pairwise"}) {
        Options options = deterministic();
        options.algorithm = algorithm;
        options.lanes = 2;
        INFO(size << " ranks on " << topology.hosts() << " hosts, algorithm \"" << algorithm
                  << '"');
        CHECK(averages_with(topology, options, 3, 0, true) == expected);
      }
    }
  }
}

TEST_CASE("twenty runs in one job and of one job") {
  const std::string expected = averages_with(Topology::single_host(3), deterministic(), 1, 0);
  InprocJob job(3, deterministic());
  for (int run = 0; run < 20; ++run) CHECK(averages(job, 1 + run % 4, run, false) == expected);
  for (int run = 0; run < 20; ++run)
    CHECK(averages_with(topologies_of(3)[run % 2], deterministic(), 2, 0) == expected);
}

// Or the cases above could not fail.
TEST_CASE("without the option another algorithm rounds otherwise") {
  Options ring;
  ring.algorithm = "ring";
  ring.shared_memory = false;
  CHECK(averages_with(Topology::single_host(4), ring, 1, 0) !=
        averages_with(Topology::single_host(4), deterministic(), 1, 0));
}

}  // namespace allring::test
