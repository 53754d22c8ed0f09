#include "benchmarks/bench/arguments.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

#include "benchmarks/bench/command_line.h"

namespace allring::bench {

namespace {

const std::map<std::string, CollectiveKind> kCollectives = {
    {"allreduce", CollectiveKind::kAllreduce},
    {"allgather", CollectiveKind::kAllgather},
    {"reduce_scatter", CollectiveKind::kReduceScatter},
    {"broadcast", CollectiveKind::kBroadcast},
    {"alltoall", CollectiveKind::kAlltoall},
    {"barrier", CollectiveKind::kBarrier},
};

std::map<std::string, DataType> data_types() {
  std::map<std::string, DataType> names;
  for (int i = 0; i < kDataTypeCount; ++i) {
    const auto dtype = static_cast<DataType>(i);
    if (dtype != DataType::kBool) names.emplace(data_type_name(dtype), dtype);
  }
  return names;
}

const std::map<std::string, ReduceOp> kOps = {
    {"sum", ReduceOp::kSum}, {"average", ReduceOp::kAverage}, {"min", ReduceOp::kMin},
    {"max", ReduceOp::kMax}, {"product", ReduceOp::kProduct},
};

}  // namespace

std::vector<std::size_t> Arguments::sizes() const {
  if (collective == CollectiveKind::kBarrier) return {0};
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = begin_bytes; bytes <= end_bytes; bytes *= factor) {
    sizes.push_back(bytes);
    if (bytes > end_bytes / factor) break;
  }
  return sizes;
}

bool parse_arguments(int argc, char** argv, const std::string& footer, Arguments* arguments,
                     int* exit_code) {
  CLI::App app("Measures Allring's collectives: hvdrun -np 2 hvdbench allreduce -b 8 -e 64M -f 4");
  app.name("hvdbench");
  app.footer(footer);
  app.option_defaults()->always_capture_default();
  app.add_option("collective", arguments->collective, "What to measure")
      ->transform(CLI::Transformer(kCollectives, CLI::ignore_case)
                      .description("allreduce|allgather|reduce_scatter|broadcast|alltoall|barrier"))
      ->default_str("allreduce");
  app.add_option("-b,--minbytes", arguments->begin_bytes, "First size")
      ->transform(bytes_validator());
  app.add_option("-e,--maxbytes", arguments->end_bytes, "Last size")->transform(bytes_validator());
  app.add_option("-f,--stepfactor", arguments->factor, "Each size is the last times this")
      ->check(CLI::Range(std::size_t{2}, std::size_t{1} << 20));
  app.add_option("-d,--datatype", arguments->dtype, "Element type")
      ->transform(CLI::Transformer(data_types(), CLI::ignore_case)
                      .description("float32|float16|bfloat16|float64|int32|..."))
      ->default_str("float32");
  app.add_option("-o,--op", arguments->op, "Reduction")
      ->transform(
          CLI::Transformer(kOps, CLI::ignore_case).description("sum|average|min|max|product"))
      ->default_str("sum");
  app.add_option("-r,--root", arguments->root, "Root of broadcast")->check(CLI::NonNegativeNumber);
  app.add_option("-w,--warmup_iters", arguments->warmup_iterations, "Calls before the clock runs")
      ->check(CLI::Range(0, 1000000));
  app.add_option("-n,--iters", arguments->iterations, "Calls that are timed")
      ->check(CLI::Range(1, 1000000));
  app.add_option("-c,--check", arguments->check, "Compare each result with the expected one");
  app.add_option("--layer", arguments->layer,
                 "runtime: negotiated, through the C interface; core: the bare communicator")
      ->check(CLI::IsMember({"runtime", "core"}));
  app.add_option("--algorithm", arguments->algorithm,
                 "Forces a row of the catalog, \"ring\" or \"allreduce=ring,allgather=ring\"");
  add_contest_options(app, &arguments->buffers, &arguments->against);
  app.add_flag("--share", arguments->share,
               "Adds a column: busbw, in % of the rate at which another rank's memory is read");
  app.add_option("--json", arguments->json_file, "Writes the results to a file (rank 0)");
  app.add_option("--csv", arguments->csv_file, "Likewise as comma-separated values");
  app.add_option("--plot", arguments->plot_file,
                 "Draws time and bus bandwidth against size into an SVG file (needs matplotlib)");
  if (const auto status = parse_command_line(app, argc, argv)) {
    *exit_code = *status;
    return false;
  }
  if (arguments->begin_bytes == 0 || arguments->end_bytes < arguments->begin_bytes) {
    std::cerr << "hvdbench: -b " << arguments->begin_bytes << " -e " << arguments->end_bytes
              << ": sizes must grow from at least 1 byte\n";
    *exit_code = 2;
    return false;
  }
  return true;
}

}  // namespace allring::bench
