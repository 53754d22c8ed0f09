#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collectives/algorithm/algorithm.h"
#include "collectives/base/types.h"

namespace allring::bench {

/// The command line of the collectives; flags and their letters are those of nccl-tests.
struct Arguments {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  std::size_t begin_bytes = 8;
  std::size_t end_bytes = 64 << 20;
  std::size_t factor = 4;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Rank root = 0;
  int warmup_iterations = 5;
  int iterations = 20;
  bool check = true;
  std::string layer = "runtime";    ///< "core" or "runtime"
  std::string algorithm;            ///< empty: the catalog chooses
  std::string buffers = "private";  ///< ours: "private" or "arena"
  std::string against;              ///< "openmpi", or empty
  bool share = false;               ///< each row's share of what the memory allows
  std::string json_file;
  std::string csv_file;
  std::string plot_file;

  /// begin, begin·factor, ... up to end.
  std::vector<std::size_t> sizes() const;
};

/// Parses or, for --help, --version and mistakes, prints and gives the exit code through
/// `*exit_code` (0 or 2); false then.
/// @param footer ends the text of --help.
bool parse_arguments(int argc, char** argv, const std::string& footer, Arguments* arguments,
                     int* exit_code);

}  // namespace allring::bench
