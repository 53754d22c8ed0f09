#pragma once

#include <span>
#include <string>
#include <vector>

#include "benchmarks/bench/models.h"
#include "benchmarks/bench/report.h"
#include "benchmarks/bench/timing.h"

namespace allring::bench {

/// How one method did a step.
struct StepResult {
  std::string impl;
  std::string mode;
  std::string buffers = "private";
  Timing time;
  std::int64_t wrong = -1;  ///< elements that differ on any rank; -1: not checked
};

struct StepRatio {
  std::string buffers;  ///< ours
  std::string against;
  std::string mode;  ///< the peer's, or "best" for the fastest of its modes
  double ratio = 0;
};

/// Each of the peers' modes, and the best of them, over ours, which comes first.
std::vector<StepRatio> step_ratios(std::span<const StepResult> results);

void print_step_table(const Model& model, const Setting& setting,
                      std::span<const StepResult> results);

/// {"np", "hosts", "model", "tensors", "bytes", "results", "ratios"}; docs/hvdbench.md lists the
/// fields.
std::string step_json(const Model& model, const Setting& setting,
                      std::span<const StepResult> results);

}  // namespace allring::bench
