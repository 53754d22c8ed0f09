#include "benchmarks/bench/subcommand.h"

#include <vector>

#include "benchmarks/bench/explain_command.h"
#include "benchmarks/bench/limits_command.h"
#include "benchmarks/bench/step_command.h"
#include "benchmarks/bench/tune_command.h"

namespace allring::bench {

std::span<const Subcommand> subcommands() {
  static const std::vector<Subcommand> rows = {
      {"step", "sums the gradients of a training step", run_step},
      {"limits", "what memory, processor and kernel of this host allow", run_limits},
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

std::string list_of_subcommands() {
  std::string text = "Other measurements (hvdbench NAME --help):\n";
  for (const Subcommand& row : subcommands())
    text += "  " + std::string(row.name) + ": " + std::string(row.summary) + "\n";
  return text;
}

}  // namespace allring::bench
