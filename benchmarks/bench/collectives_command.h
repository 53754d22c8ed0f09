#pragma once

namespace allring::bench {

/// `hvdbench [allreduce|allgather|...]`: the table of sizes. Collective over the job's ranks.
/// @return the exit status: 1 also if a result was wrong.
int run_collectives(int argc, char** argv);

}  // namespace allring::bench
