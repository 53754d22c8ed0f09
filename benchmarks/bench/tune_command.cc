#include "benchmarks/bench/tune_command.h"

#include <cstdio>
#include <fstream>
#include <string>

#include "benchmarks/bench/bare_job.h"
#include "benchmarks/bench/command_line.h"
#include "benchmarks/bench/tune.h"

namespace allring::bench {

namespace {

Status write(const std::string& path, const std::string& text) {
  if (path.empty()) {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? Status()
              : Status::invalid_argument("--output " + path + ": the file cannot be written");
}

}  // namespace

int run_tune(int argc, char** argv) {
  CLI::App app(
      "Measures what moving and adding bytes costs here: hvdrun -np 4 -H a:2,b:2 hvdbench tune -o "
      "cluster.tuning. Jobs with ALLRING_TUNING_FILE=cluster.tuning choose algorithms by that");
  app.name("hvdbench tune");
  std::string output;
  app.add_option("-o,--output", output, "File to write (rank 0); standard output without it");
  if (const auto status = parse_command_line(app, argc, argv)) return *status;

  Result<BareJob> job = BareJob::join();
  if (!job.ok()) return exit_status(job.status());
  Group& group = job->lane->group();
  const Result<Tuning> tuning = tune(group);
  if (!tuning.ok()) return exit_status(tuning.status());
  if (group.rank() != 0) return 0;
  const Status written = write(output, tuning->to_text(group));
  return written.ok() ? 0 : exit_status(written);
}

}  // namespace allring::bench
