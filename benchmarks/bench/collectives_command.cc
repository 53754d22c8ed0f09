#include "benchmarks/bench/collectives_command.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/bench/arguments.h"
#include "benchmarks/bench/command_line.h"
#include "benchmarks/bench/contestant.h"
#include "benchmarks/bench/plot.h"
#include "benchmarks/bench/probes.h"
#include "benchmarks/bench/report.h"
#include "benchmarks/bench/runner.h"

namespace allring::bench {

namespace {

/// Ours and then the peer.
struct Contestants {
  std::unique_ptr<Contestant> peer;
  std::unique_ptr<Contestant> ours;  // leaves the job first

  std::vector<Contestant*> all() const {
    std::vector<Contestant*> list = {ours.get()};
    if (peer) list.push_back(peer.get());
    return list;
  }
};

/// What the peer cannot do is said before anything is measured.
Status check_comparable(const Arguments& arguments) {
  if (arguments.against.empty()) return {};
  if (is_half(arguments.dtype))
    return Status::invalid_argument("--against " + arguments.against + ": MPI has no " +
                                    std::string(data_type_name(arguments.dtype)));
  if (arguments.op == ReduceOp::kAverage)
    return Status::invalid_argument("--against " + arguments.against +
                                    ": MPI has no average; compare sums");
  return {};
}

Result<Contestants> make_contestants(const Arguments& arguments) {
  Contestants made;
  if (!arguments.against.empty()) {
    ALLRING_ASSIGN_OR_RETURN(made.peer, make_mpi_contestant());
  }
  ALLRING_ASSIGN_OR_RETURN(
      made.ours, arguments.layer == "core" ? make_core_contestant() : make_runtime_contestant());
  if (made.peer &&
      (made.peer->rank() != made.ours->rank() || made.peer->size() != made.ours->size()))
    return Status::invalid_argument(
        "--against " + arguments.against + ": MPI says rank " + std::to_string(made.peer->rank()) +
        " of " + std::to_string(made.peer->size()) + " and the job rank " +
        std::to_string(made.ours->rank()) + " of " + std::to_string(made.ours->size()) +
        ": is liballring_mpi.so built for the MPI whose mpirun started this job?");
  if (arguments.root >= made.ours->size())
    return Status::invalid_argument("-r " + std::to_string(arguments.root) + ": the job has " +
                                    std::to_string(made.ours->size()) + " ranks");
  return made;
}

/// Before anything is measured: whether rank 0 can draw. On other ranks without a message.
Status check_plot(const Arguments& arguments, Contestant& ranks) {
  if (arguments.plot_file.empty()) return {};
  const Status mine = ranks.rank() == 0 ? can_plot() : Status();
  std::vector<double> failed = {mine.ok() ? 0.0 : 1.0};
  ALLRING_RETURN_IF_ERROR(ranks.max_over_ranks(failed));
  return failed[0] == 0 || !mine.ok() ? mine : Status::unsupported("");
}

Status run_sizes(const Contestants& contestants, const Arguments& arguments, const Setting& setting,
                 std::vector<Measurement>* results) {
  const bool prints = contestants.ours->rank() == 0;
  const std::vector<Contestant*> all = contestants.all();
  const Table table(arguments, setting);
  if (prints) table.print_head();
  for (std::size_t bytes : arguments.sizes()) {
    ALLRING_ASSIGN_OR_RETURN(const auto out, measure(all, arguments, bytes, false));
    results->insert(results->end(), out.begin(), out.end());
    std::vector<Measurement> in;
    if (has_in_place(arguments.collective)) {
      ALLRING_ASSIGN_OR_RETURN(in, measure(all, arguments, bytes, true));
      results->insert(results->end(), in.begin(), in.end());
    }
    if (prints) table.print_row(out, in);
  }
  return {};
}

Status write_files(const Arguments& arguments, const Setting& setting,
                   const std::vector<Measurement>& results) {
  if (!arguments.json_file.empty())
    ALLRING_RETURN_IF_ERROR(write_file(arguments.json_file, to_json(setting, results)));
  if (!arguments.csv_file.empty())
    ALLRING_RETURN_IF_ERROR(write_file(arguments.csv_file, to_csv(setting, results)));
  if (!arguments.plot_file.empty())
    ALLRING_RETURN_IF_ERROR(plot(to_json(setting, results), arguments.plot_file));
  return {};
}

Status run(const Arguments& arguments) {
  ALLRING_RETURN_IF_ERROR(check_comparable(arguments));
  ALLRING_ASSIGN_OR_RETURN(const Contestants contestants, make_contestants(arguments));
  ALLRING_RETURN_IF_ERROR(check_plot(arguments, *contestants.ours));
  Setting setting;
  setting.load = load_average();
  setting.size = contestants.ours->size();
  ALLRING_ASSIGN_OR_RETURN(setting.peer_memory_gbps, peer_memory_gbps(*contestants.ours));
  setting.hosts = contestants.ours->hosts();
  if (contestants.peer) setting.peer = contestants.peer->description();
  std::vector<Measurement> results;
  ALLRING_RETURN_IF_ERROR(run_sizes(contestants, arguments, setting, &results));
  if (contestants.ours->rank() == 0)
    ALLRING_RETURN_IF_ERROR(write_files(arguments, setting, results));
  for (const Measurement& m : results) {
    if (m.wrong > 0) return Status::internal("wrong results of " + m.impl + ", see the table");
  }
  return {};
}

}  // namespace

int run_collectives(int argc, char** argv, const std::string& footer) {
  Arguments arguments;
  int exit_code = 0;
  if (!parse_arguments(argc, argv, footer, &arguments, &exit_code)) return exit_code;
  if (!arguments.algorithm.empty())
    setenv("ALLRING_ALGORITHM", arguments.algorithm.c_str(), 1);  // one knob, one way in
  const Status status = run(arguments);
  return status.ok() ? 0 : exit_status(status);
}

}  // namespace allring::bench
