#include "benchmarks/bench/step_command.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/bench/command_line.h"
#include "benchmarks/bench/contestant.h"
#include "benchmarks/bench/memory.h"
#include "benchmarks/bench/models.h"
#include "benchmarks/bench/mpi_library.h"
#include "benchmarks/bench/probes.h"
#include "benchmarks/bench/step_method.h"
#include "benchmarks/bench/step_report.h"
#include "benchmarks/bench/turns.h"

namespace allring::bench {

namespace {

constexpr std::size_t kBuckets[] = {1 << 20, 4 << 20, 16 << 20, 64 << 20};

struct StepArguments {
  std::string model = "resnet50";
  int warmup_steps = 2;
  int steps = 20;
  bool check = true;
  std::string buffers = "private";
  std::string against;
  std::string json_file;
};

std::optional<int> parse(int argc, char** argv, StepArguments* arguments) {
  CLI::App app(
      "Sums the gradients of one training step through the runtime: "
      "hvdrun -np 2 hvdbench step --model resnet50");
  app.name("hvdbench step");
  app.option_defaults()->always_capture_default();
  app.add_option("--model", arguments->model, "Whose tensors")->check(CLI::IsMember(model_names()));
  app.add_option("-w,--warmup_iters", arguments->warmup_steps, "Steps before the clock runs")
      ->check(CLI::Range(0, 1000000));
  app.add_option("-n,--iters", arguments->steps, "Steps that are timed")
      ->check(CLI::Range(1, 1000000));
  app.add_option("-c,--check", arguments->check, "Compare each sum with the expected one");
  add_contest_options(app, &arguments->buffers, &arguments->against);
  app.add_option("--json", arguments->json_file, "Writes the results to a file (rank 0)");
  return parse_command_line(app, argc, argv);
}

/// Small whole numbers, so that sums are exact.
float input_value(int rank, std::size_t tensor, std::size_t index) {
  return static_cast<float>(static_cast<std::size_t>(rank % 5) + (index + tensor) % 7);
}

/// The tensors of a step, and their memory.
struct Gradients {
  std::vector<Memory> memory;
  std::vector<Tensor> tensors;
  std::string buffers;
};

Result<Gradients> lay_out(const Model& model, Contestant& owner, const std::string& buffers) {
  Gradients gradients;
  gradients.buffers = buffers;
  for (const std::size_t count : model.counts) {
    ALLRING_ASSIGN_OR_RETURN(Memory memory, owner.allocate(buffers, count * sizeof(float)));
    gradients.tensors.push_back({reinterpret_cast<float*>(memory.data()), count});
    gradients.memory.push_back(std::move(memory));
  }
  return gradients;
}

void fill(std::span<const Tensor> tensors, int rank) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (std::size_t i = 0; i < tensors[t].count; ++i) tensors[t].data[i] = input_value(rank, t, i);
  }
}

double count_wrong(std::span<const Tensor> tensors, int size) {
  double wrong = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    float expected[7] = {};
    for (std::size_t place = 0; place < 7; ++place) {
      for (int rank = 0; rank < size; ++rank) expected[place] += input_value(rank, t, place);
    }
    for (std::size_t i = 0; i < tensors[t].count; ++i)
      wrong += tensors[t].data[i] != expected[i % 7];
  }
  return wrong;
}

void clear(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) std::fill_n(tensor.data, tensor.count, 0.0F);
}

/// One method with the memory that it works on.
struct Entry {
  std::unique_ptr<StepMethod> method;
  std::span<const Tensor> tensors;
  std::string buffers;
};

Result<StepResult> prepare(const Entry& entry, Contestant& ranks, const StepArguments& arguments) {
  StepResult result;
  result.impl = entry.method->impl();
  result.mode = entry.method->mode();
  result.buffers = entry.buffers;
  if (arguments.check) {
    fill(entry.tensors, ranks.rank());
    ALLRING_RETURN_IF_ERROR(entry.method->run());
    std::vector<double> wrong = {count_wrong(entry.tensors, ranks.size())};
    ALLRING_RETURN_IF_ERROR(ranks.max_over_ranks(wrong));
    result.wrong = static_cast<std::int64_t>(wrong[0]);
  }
  clear(entry.tensors);  // repeated sums stay finite
  for (int i = 0; i < arguments.warmup_steps; ++i) ALLRING_RETURN_IF_ERROR(entry.method->run());
  return result;
}

/// A step with fresh gradients; all ranks start it together.
Result<double> sample(const Entry& entry, Contestant& starter) {
  for (const Tensor& tensor : entry.tensors)
    rewrite(reinterpret_cast<std::byte*>(tensor.data), tensor.bytes());
  ALLRING_RETURN_IF_ERROR(starter.barrier());
  const double start = now_us();
  ALLRING_RETURN_IF_ERROR(entry.method->run());
  return now_us() - start;
}

Result<std::vector<StepResult>> measure(const std::vector<Entry>& entries, Contestant& ranks,
                                        Contestant& starter, const StepArguments& arguments) {
  std::vector<StepResult> results;
  std::vector<Entrant> entrants;
  for (const Entry& entry : entries) {
    ALLRING_ASSIGN_OR_RETURN(StepResult result, prepare(entry, ranks, arguments));
    results.push_back(std::move(result));
    entrants.push_back({[&entry, &starter] { return sample(entry, starter); }});
  }
  ALLRING_RETURN_IF_ERROR(sample_in_turns(entrants, arguments.steps));
  for (std::size_t i = 0; i < results.size(); ++i) {
    ALLRING_RETURN_IF_ERROR(ranks.max_over_ranks(entrants[i].samples));
    results[i].time = summarise(entrants[i].samples);
  }
  return results;
}

Status run(const StepArguments& arguments) {
  std::unique_ptr<Contestant> peer;
  std::optional<MpiCollectives> mpi;
  if (!arguments.against.empty()) {
    ALLRING_ASSIGN_OR_RETURN(mpi, MpiCollectives::open());
    ALLRING_ASSIGN_OR_RETURN(peer, make_mpi_contestant());
  }
  ALLRING_ASSIGN_OR_RETURN(const std::unique_ptr<Contestant> ours, make_runtime_contestant());
  Setting setting;
  setting.load = load_average();
  setting.size = ours->size();
  ALLRING_ASSIGN_OR_RETURN(setting.peer_memory_gbps, peer_memory_gbps(*ours));
  setting.hosts = ours->hosts();
  if (peer) setting.peer = peer->description();

  const Model model = make_model(arguments.model);
  ALLRING_ASSIGN_OR_RETURN(const Gradients mine, lay_out(model, *ours, arguments.buffers));
  std::vector<Entry> entries;
  entries.push_back({runtime_step(mine.tensors), mine.tensors, mine.buffers});
  // MPI has what a program would give it, private memory: ours, if that is private.
  std::optional<Gradients> others;
  if (mpi) {
    if (mine.buffers != "private") {
      ALLRING_ASSIGN_OR_RETURN(others, lay_out(model, *ours, "private"));
    }
    const std::vector<Tensor>& tensors = others ? others->tensors : mine.tensors;
    entries.push_back({mpi_step(*mpi, tensors), tensors, "private"});
    for (const std::size_t bytes : kBuckets)
      entries.push_back({mpi_bucket_step(*mpi, tensors, bytes), tensors, "private"});
  }
  ALLRING_ASSIGN_OR_RETURN(const std::vector<StepResult> results,
                           measure(entries, *ours, peer ? *peer : *ours, arguments));
  if (ours->rank() == 0) {
    print_step_table(model, setting, results);
    if (!arguments.json_file.empty())
      ALLRING_RETURN_IF_ERROR(write_file(arguments.json_file, step_json(model, setting, results)));
  }
  for (const StepResult& result : results) {
    if (result.wrong > 0)
      return Status::internal("wrong sums of " + result.impl + ", " + result.mode);
  }
  return {};
}

}  // namespace

int run_step(int argc, char** argv) {
  StepArguments arguments;
  if (const auto status = parse(argc, argv, &arguments)) return *status;
  const Status status = run(arguments);
  return status.ok() ? 0 : exit_status(status);
}

}  // namespace allring::bench
