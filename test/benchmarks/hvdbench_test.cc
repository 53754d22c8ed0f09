// The parts of hvdbench that need no other rank: sizes, patterns, bandwidths.
#include <catch2/catch.hpp>
#include <vector>

#include "benchmarks/bench/arguments.h"
#include "benchmarks/bench/command_line.h"
#include "benchmarks/bench/pattern.h"
#include "benchmarks/bench/runner.h"
#include "benchmarks/bench/subcommand.h"

namespace allring::bench {

TEST_CASE("sizes are written with binary units") {
  std::size_t bytes = 0;
  REQUIRE(parse_bytes("8", &bytes));
  CHECK(bytes == 8);
  REQUIRE(parse_bytes("64k", &bytes));
  CHECK(bytes == 65536);
  REQUIRE(parse_bytes("2G", &bytes));
  CHECK(bytes == std::size_t{2} << 30);
  for (const char* bad : {"", "K", "8X", "-1", "1.5M", "8KB", "99999999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_bytes(bad, &bytes));
  }
}

TEST_CASE("sizes grow by the factor up to the last that fits") {
  Arguments arguments;
  arguments.begin_bytes = 8;
  arguments.end_bytes = 600;
  arguments.factor = 4;
  CHECK(arguments.sizes() == std::vector<std::size_t>{8, 32, 128, 512});
  arguments.end_bytes = 8;
  CHECK(arguments.sizes() == std::vector<std::size_t>{8});
  arguments.collective = CollectiveKind::kBarrier;
  CHECK(arguments.sizes() == std::vector<std::size_t>{0});
}

TEST_CASE("every subcommand is found by its name and nothing else is") {
  for (const Subcommand& row : subcommands()) {
    CHECK(find_subcommand(row.name) == &row);
    CHECK(row.run != nullptr);
  }
  CHECK(find_subcommand("allreduce") == nullptr);
  CHECK(find_subcommand("") == nullptr);
}

TEST_CASE("a right result has no wrong element, and a changed one has one") {
  const ReduceOp op = GENERATE(ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax,
                               ReduceOp::kProduct);
  constexpr int kSize = 3;
  constexpr std::size_t kCount = 1000;
  std::vector<float> output(kCount);
  Call call;
  call.op = op;
  call.count = kCount;
  call.output = output.data();
  for (std::size_t i = 0; i < kCount; ++i) {
    double value = input_value(op, 0, i);
    for (int rank = 1; rank < kSize; ++rank) {
      const double other = input_value(op, rank, i);
      if (op == ReduceOp::kMin) value = std::min(value, other);
      if (op == ReduceOp::kMax) value = std::max(value, other);
      if (op == ReduceOp::kProduct) value *= other;
      if (op == ReduceOp::kSum || op == ReduceOp::kAverage) value += other;
    }
    output[i] = static_cast<float>(op == ReduceOp::kAverage ? value / kSize : value);
  }
  CHECK(count_wrong(call, 1, kSize) == 0);
  output[999] += 1;
  CHECK(count_wrong(call, 1, kSize) == 1);
}

TEST_CASE("an input repeats the pattern whatever its length") {
  Call call;
  call.count = 1003;
  std::vector<float> input(call.count);
  fill_input(call, 2, 4, input.data());
  for (std::size_t i = 0; i < call.count; ++i)
    REQUIRE(static_cast<double>(input[i]) == input_value(call.op, 2, i));
}

TEST_CASE("bus bandwidth follows the collective") {
  Measurement m;
  m.bytes = 1000;
  m.time.median_us = 1;
  CHECK(m.algbw_gbps() == Approx(1.0));
  CHECK(m.busbw_gbps(4) == Approx(1.5));
  m.collective = CollectiveKind::kAllgather;
  CHECK(m.busbw_gbps(4) == Approx(0.75));
  m.collective = CollectiveKind::kBroadcast;
  CHECK(m.busbw_gbps(4) == Approx(1.0));
}

}  // namespace allring::bench
