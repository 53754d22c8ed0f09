#include "benchmarks/bench/subcommand.h"

#include <vector>

#include "benchmarks/bench/explain_command.h"
#include "benchmarks/bench/tune_command.h"

namespace allring::bench {

std::span<const Subcommand> subcommands() {
  static const std::vector<Subcommand> rows = {
      {"explain", "which algorithm would run, and why", run_explain},
      {"tune", "measures the cost model's parameters, for ALLRING_TUNING_FILE", run_tune},
  };
  return rows;
}

const Subcommand* find_subcommand(std::string_view name) {
  for (const Subcommand& row : subcommands()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace allring::bench
