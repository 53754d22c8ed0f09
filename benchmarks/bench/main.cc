// hvdbench: the benchmark. Finds who does what the first argument says.
#include "benchmarks/bench/collectives_command.h"
#include "benchmarks/bench/subcommand.h"

int main(int argc, char** argv) {
  using namespace allring::bench;
  const Subcommand* named = argc > 1 ? find_subcommand(argv[1]) : nullptr;
  if (named == nullptr) return run_collectives(argc, argv, list_of_subcommands());
  argv[1] = argv[0];
  return named->run(argc - 1, argv + 1);
}
