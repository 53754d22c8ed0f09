#include "benchmarks/bench/collectives_command.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/bench/arguments.h"
#include "benchmarks/bench/command_line.h"
#include "benchmarks/bench/contestant.h"
#include "benchmarks/bench/report.h"
#include "benchmarks/bench/runner.h"

namespace allring::bench {

namespace {

Status run_sizes(Contestant& contestant, const Arguments& arguments,
                 std::vector<Measurement>* results) {
  const bool prints = contestant.rank() == 0;
  const Table table(arguments, contestant.size(), contestant.hosts());
  if (prints) table.print_head();
  for (std::size_t bytes : arguments.sizes()) {
    ALLRING_ASSIGN_OR_RETURN(Measurement out, measure(contestant, arguments, bytes, false));
    results->push_back(out);
    const Measurement* in = nullptr;
    if (has_in_place(arguments.collective)) {
      ALLRING_ASSIGN_OR_RETURN(Measurement in_place, measure(contestant, arguments, bytes, true));
      results->push_back(in_place);
      in = &results->back();
    }
    if (prints) table.print_row(out, in);
  }
  return {};
}

Status write_files(const Contestant& contestant, const Arguments& arguments,
                   const std::vector<Measurement>& results) {
  if (contestant.rank() != 0) return {};
  if (!arguments.json_file.empty())
    ALLRING_RETURN_IF_ERROR(
        write_json(arguments.json_file, contestant.size(), contestant.hosts(), results));
  if (!arguments.csv_file.empty())
    ALLRING_RETURN_IF_ERROR(write_csv(arguments.csv_file, contestant.size(), results));
  return {};
}

}  // namespace

int run_collectives(int argc, char** argv) {
  Arguments arguments;
  int exit_code = 0;
  if (!parse_arguments(argc, argv, &arguments, &exit_code)) return exit_code;
  if (!arguments.algorithm.empty())
    setenv("ALLRING_ALGORITHM", arguments.algorithm.c_str(), 1);  // one knob, one way in

  auto contestant = arguments.layer == "core" ? make_core_contestant() : make_runtime_contestant();
  if (!contestant.ok()) return exit_status(contestant.status());
  if (arguments.root >= (*contestant)->size())
    return exit_status(Status::invalid_argument("-r " + std::to_string(arguments.root) +
                                                ": the job has " +
                                                std::to_string((*contestant)->size()) + " ranks"));
  std::vector<Measurement> results;
  Status status = run_sizes(**contestant, arguments, &results);
  if (status.ok()) status = write_files(**contestant, arguments, results);
  if (!status.ok()) return exit_status(status);
  for (const Measurement& m : results) {
    if (m.wrong > 0) return exit_status(Status::internal("wrong results, see the table"));
  }
  return 0;
}

}  // namespace allring::bench
