#pragma once

#include <cstddef>
#include <vector>

#include "benchmarks/bench/contestant.h"

namespace allring::bench {

/// Small whole numbers, different on each rank and exact in every type and op, so that a result can
/// be compared bit for bit whatever the order of additions.
double input_value(ReduceOp op, Rank rank, std::size_t index);

/// Writes input_value() for this rank into call.input's memory (`input`).
void fill_input(const Call& call, Rank rank, int size, void* input);

/// How many elements of call.output differ from what the collective must give.
std::size_t count_wrong(const Call& call, Rank rank, int size);

/// Elements of input and output of a call on one rank.
std::size_t input_count(const Call& call, int size);
std::size_t output_count(const Call& call, int size);

}  // namespace allring::bench
