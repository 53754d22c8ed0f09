#include "benchmarks/bench/subcommand.h"

#include <vector>

namespace allring::bench {

std::span<const Subcommand> subcommands() {
  static const std::vector<Subcommand> rows = {};
  return rows;
}

const Subcommand* find_subcommand(std::string_view name) {
  for (const Subcommand& row : subcommands()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace allring::bench
