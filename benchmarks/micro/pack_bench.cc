// Packing many tensors into one batch and back, and CRC-32C. The figure is the batch's bytes per
// second.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <vector>

#include "collectives/kernels/crc32c.h"
#include "collectives/kernels/pack.h"

namespace allring {
namespace {

struct Tensors {
  Tensors(DataType dtype, std::size_t pieces, std::size_t piece_bytes)
      : batch(pieces * piece_bytes) {
    for (std::size_t i = 0; i < pieces; ++i) {
      memory.emplace_back(piece_bytes);
      sources.push_back({memory.back().data(), piece_bytes / element_bytes(dtype)});
      targets.push_back({memory.back().data(), piece_bytes / element_bytes(dtype)});
    }
  }
  std::vector<std::vector<std::byte>> memory;
  std::vector<PackPiece> sources;
  std::vector<UnpackPiece> targets;
  std::vector<std::byte> batch;
};

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes));
}

void run_pack(benchmark::State& state, DataType dtype, std::size_t piece_bytes, double factor) {
  Tensors tensors(dtype, (256 << 10) / piece_bytes, piece_bytes);
  for (auto _ : state) {
    pack(tensors.batch.data(), tensors.sources, dtype, factor);
    benchmark::ClobberMemory();
  }
  count_bytes(state, tensors.batch.size());
}

void run_unpack(benchmark::State& state, DataType dtype, std::size_t piece_bytes, double factor) {
  Tensors tensors(dtype, (256 << 10) / piece_bytes, piece_bytes);
  for (auto _ : state) {
    unpack(tensors.targets, tensors.batch.data(), dtype, factor);
    benchmark::ClobberMemory();
  }
  count_bytes(state, tensors.batch.size());
}

template <std::uint32_t (*kCrc)(std::uint32_t, const void*, std::size_t)>
void run_crc(benchmark::State& state) {
  const std::vector<std::byte> data(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(kCrc(0, data.data(), data.size()));
  count_bytes(state, data.size());
}
BENCHMARK(run_crc<crc32c>)->Name("crc32c")->RangeMultiplier(16)->Range(64, 1 << 20);
BENCHMARK(run_crc<crc32c_portable>)
    ->Name("crc32c_portable")
    ->RangeMultiplier(16)
    ->Range(64, 1 << 20);

[[maybe_unused]] const bool added = [] {
  for (const DataType dtype : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
    for (const std::size_t piece_bytes : {64, 4096, 65536}) {
      for (const double factor : {1.0, 0.5}) {
        const std::string rest = "/" + std::string(data_type_name(dtype)) + "/" +
                                 std::to_string(piece_bytes) + "B" + (factor == 1 ? "" : "/scaled");
        benchmark::RegisterBenchmark(("pack" + rest).c_str(), [=](benchmark::State& state) {
          run_pack(state, dtype, piece_bytes, factor);
        });
        benchmark::RegisterBenchmark(("unpack" + rest).c_str(), [=](benchmark::State& state) {
          run_unpack(state, dtype, piece_bytes, factor);
        });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace allring

BENCHMARK_MAIN();
