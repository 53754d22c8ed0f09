#pragma once

namespace allring::bench {

/// `hvdbench tune -o FILE`: measures what moving and adding bytes costs on this cluster, in the
/// terms of the cost model, and writes the file that ALLRING_TUNING_FILE names. Collective over the
/// job's ranks: two on one host measure its memory and messages within it, two hosts the wire;
/// what the job has none of keeps its default. @return the exit status.
int run_tune(int argc, char** argv);

}  // namespace allring::bench
