// reduce(): n sources to m destinations, per dtype, length and instruction set. The figure is what
// is read and written, per second.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <vector>

#include "collectives/kernels/reduce.h"

namespace allring {
namespace {

struct Case {
  DataType dtype;
  ReduceOp op;
  std::size_t sources;
  std::size_t destinations;
  std::size_t bytes;  ///< of each source
};

void run(benchmark::State& state, const std::string& simd, const Case& one) {
  if (!set_simd(simd).ok()) {
    state.SkipWithError("this processor lacks it");
    return;
  }
  const std::size_t count = one.bytes / element_bytes(one.dtype);
  // All destinations but the first are apart from the sources, as other ranks' slots are.
  std::vector<std::vector<std::byte>> memory(one.sources + one.destinations,
                                             std::vector<std::byte>(one.bytes));
  std::vector<const void*> sources;
  std::vector<void*> destinations;
  for (std::size_t i = 0; i < one.sources; ++i) sources.push_back(memory[i].data());
  for (std::size_t i = 0; i < one.destinations; ++i)
    destinations.push_back(memory[one.sources + i].data());
  const Reduction reduction = Reduction::resolve(one.dtype, one.op, 3, 1.0).value();
  for (auto _ : state) {
    reduce(destinations, sources, count, reduction);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(
      static_cast<std::int64_t>(state.iterations() * memory.size() * one.bytes));
  (void)set_simd("auto");
}

void add(const Case& one) {
  for (const char* simd : {"scalar", "avx2", "avx512"}) {
    const std::string name = "reduce/" + std::string(data_type_name(one.dtype)) + "/" +
                             std::string(reduce_op_name(one.op)) + "/" +
                             std::to_string(one.sources) + "to" + std::to_string(one.destinations) +
                             "/" + std::to_string(one.bytes >> 10) + "KiB/" + simd;
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=](benchmark::State& state) { run(state, simd, one); });
  }
}

[[maybe_unused]] const bool added = [] {
  // In the first-level cache, in the second-level one, and in memory.
  for (const std::size_t kib : {4, 64, 16384}) {
    for (int dtype = 0; dtype < kDataTypeCount; ++dtype)
      add({static_cast<DataType>(dtype), ReduceOp::kSum, 2, 1, kib << 10});
  }
  for (const DataType dtype : {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}) {
    for (const std::size_t ranks : {2, 4, 8}) add({dtype, ReduceOp::kSum, ranks, ranks, 64 << 10});
    for (const std::size_t ranks : {4, 8}) add({dtype, ReduceOp::kSum, ranks, 1, 64 << 10});
    add({dtype, ReduceOp::kMax, 2, 1, 64 << 10});
  }
  for (int dtype = 0; dtype < kDataTypeCount; ++dtype) {
    if (static_cast<DataType>(dtype) != DataType::kBool)
      add({static_cast<DataType>(dtype), ReduceOp::kAverage, 2, 1, 64 << 10});
  }
  return true;
}();

}  // namespace
}  // namespace allring

BENCHMARK_MAIN();
