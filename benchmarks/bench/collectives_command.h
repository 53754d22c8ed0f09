#pragma once

#include <string>

namespace allring::bench {

/// `hvdbench [allreduce|allgather|...]`: the table of sizes. Collective over the job's ranks.
/// @param footer ends the text of --help.
/// @return the exit status: 1 also if a result was wrong.
int run_collectives(int argc, char** argv, const std::string& footer);

}  // namespace allring::bench
