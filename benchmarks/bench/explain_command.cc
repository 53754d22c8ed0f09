#include "benchmarks/bench/explain_command.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "benchmarks/bench/bare_job.h"
#include "benchmarks/bench/command_line.h"
#include "collectives/schedule/chunks.h"
#include "collectives/transport/arena.h"
#include "collectives/transport/heap_host_memory.h"
#include "collectives/transport/inproc.h"
#include "collectives/transport/segment.h"

namespace allring::bench {

namespace {

constexpr CollectiveKind kKinds[] = {
    CollectiveKind::kAllreduce, CollectiveKind::kReduceScatter, CollectiveKind::kAllgather,
    CollectiveKind::kBroadcast, CollectiveKind::kAlltoall,      CollectiveKind::kBarrier,
};

struct Question {
  CollectiveKind kind = CollectiveKind::kAllreduce;
  std::size_t bytes = 1 << 20;
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::vector<int> hosts;  ///< ranks on each; empty: the job's
  bool no_shared_memory = false;
};

std::optional<int> parse(int argc, char** argv, Question* question) {
  std::map<std::string, CollectiveKind> kinds;
  for (const CollectiveKind kind : kKinds) kinds.emplace(collective_kind_name(kind), kind);
  std::map<std::string, DataType> dtypes;
  for (int i = 0; i < kDataTypeCount; ++i)
    dtypes.emplace(data_type_name(static_cast<DataType>(i)), static_cast<DataType>(i));
  std::map<std::string, ReduceOp> ops;
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct})
    ops.emplace(reduce_op_name(op), op);

  CLI::App app("Says which algorithm would run and why: hvdbench explain -b 1M --hosts 4,4");
  app.name("hvdbench explain");
  app.option_defaults()->always_capture_default();
  app.add_option("collective", question->kind, "What would run")
      ->transform(CLI::Transformer(kinds, CLI::ignore_case)
                      .description("allreduce|allgather|reduce_scatter|broadcast|alltoall|barrier"))
      ->default_str("allreduce");
  app.add_option("-b,--bytes", question->bytes, "Size, of the larger side on one rank")
      ->transform(bytes_validator());
  app.add_option("-d,--datatype", question->dtype, "Element type")
      ->transform(CLI::Transformer(dtypes, CLI::ignore_case).description("float32|float16|..."))
      ->default_str("float32");
  app.add_option("-o,--op", question->op, "Reduction")
      ->transform(
          CLI::Transformer(ops, CLI::ignore_case).description("sum|average|min|max|product"))
      ->default_str("sum");
  app.add_option("--hosts", question->hosts,
                 "Ranks on each host, \"4,4\", instead of this job's; nothing is started")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  app.add_flag("--no-shared-memory", question->no_shared_memory,
               "With --hosts: as if there were none");
  return parse_command_line(app, argc, argv);
}

/// Rank 0's group of hosts that do not exist.
class ImaginedGroup {
 public:
  ImaginedGroup(const Question& question, const Options& options, const CostParameters& costs)
      : topology_(host_of(question.hosts)), network_(topology_.size()) {
    const int local_size = topology_.local_size(0);
    HostMemory* memory = nullptr;
    if (!question.no_shared_memory && options.shared_memory && local_size > 1) {
      HostMemory::Shape shape;
      shape.ranks = local_size;
      shape.slot_bytes = static_cast<std::size_t>(options.shared_memory_slot_bytes);
      memory_ = make_heap_host_memory(shape, {});
      memory = memory_[0].get();
    }
    group_ = std::make_unique<Group>(topology_, network_.transport(0),
                                     topology_.hosts() == 1 ? memory : nullptr);
    group_->set_costs(costs);
    build_hierarchy(*group_, memory);
    if (memory != nullptr && topology_.hosts() == 1 && options.arena_bytes > 0) add_arena();
  }
  Group& group() { return *group_; }

 private:
  /// That it is there matters, not how large it is.
  void add_arena() {
    const Arena::Shape shape = Arena::Shape::of(topology_.size(), 1 << 20);
    Result<std::shared_ptr<Segment>> memory = Segment::create_sparse(shape.bytes());
    if (!memory.ok()) return;
    group_->set_arena({std::make_shared<Arena>(*memory, shape, 0), topology_.ranks_on(0)});
  }

  static std::vector<std::string> host_of(const std::vector<int>& ranks) {
    std::vector<std::string> hosts;
    for (std::size_t host = 0; host < ranks.size(); ++host)
      hosts.insert(hosts.end(), ranks[host], std::to_string(host));
    return hosts;
  }

  Topology topology_;
  InprocNetwork network_;
  std::vector<std::unique_ptr<HostMemory>> memory_;
  std::unique_ptr<Group> group_;
};

Result<std::string> answer(const Question& question, Group& group, const Options& options) {
  ALLRING_ASSIGN_OR_RETURN(ForcedAlgorithms forced, ForcedAlgorithms::parse(options.algorithm));
  forced.set_deterministic(options.deterministic);
  CollectiveArgs args;
  args.kind = question.kind;
  ALLRING_ASSIGN_OR_RETURN(args.reduction,
                           Reduction::resolve(question.dtype, question.op, group.size(), 1.0));
  args.count = question.kind == CollectiveKind::kBarrier
                   ? 0
                   : question.bytes / element_bytes(question.dtype);
  const auto counts = even_counts(args.count, group.size());
  args.counts = args.recv_counts = counts;
  return explanation(args, group, forced) + "costs: " +
         (options.tuning_file.empty() ? "the built-in ones; hvdbench tune measures this cluster's"
                                      : options.tuning_file) +
         "\n";
}

}  // namespace

std::string explanation(const CollectiveArgs& args, Group& group, const ForcedAlgorithms& forced) {
  struct Line {
    const Algorithm* row;
    std::string obstacle;
    double cost_us;
  };
  std::vector<Line> lines;
  for (const Algorithm& row : algorithms(args.kind)) {
    Line line{&row, obstacle(row, args, group, forced), 0};
    if (line.obstacle.empty()) line.cost_us = row.cost_us(args, group);
    lines.push_back(std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& one, const Line& other) {
    if (one.obstacle.empty() != other.obstacle.empty()) return one.obstacle.empty();
    return one.cost_us < other.cost_us;
  });
  const Algorithm& chosen = choose(args, group, forced);
  const bool is_forced = chosen.name == forced.name(args.kind);
  char text[256];
  std::snprintf(text, sizeof(text), "%s of %zu bytes (%zu %s) over %d ranks on %d hosts%s:\n",
                std::string(collective_kind_name(args.kind)).c_str(), args.bytes(), args.count,
                std::string(data_type_name(args.reduction.dtype)).c_str(), group.size(),
                group.topology().hosts(), forced.deterministic() ? ", deterministic" : "");
  std::string result = text;
  for (const Line& line : lines) {
    std::string note = line.obstacle;
    if (line.row == &chosen)
      note = is_forced ? "runs: ALGORITHM forces it" : "runs: the least estimate";
    char estimate[32] = "-";
    if (line.obstacle.empty()) std::snprintf(estimate, sizeof(estimate), "%.2f us", line.cost_us);
    std::snprintf(text, sizeof(text), "%s %-18s %14s  %s\n", line.row == &chosen ? "->" : "  ",
                  std::string(line.row->name).c_str(), estimate, note.c_str());
    result += text;
  }
  return result;
}

int run_explain(int argc, char** argv) {
  Question question;
  if (const auto status = parse(argc, argv, &question)) return *status;
  Result<std::string> text = std::string();
  if (!question.hosts.empty()) {
    const Result<Options> options = Options::from_environment();
    if (!options.ok()) return exit_status(options.status());
    const Result<CostParameters> costs = CostParameters::load(options->tuning_file);
    if (!costs.ok()) return exit_status(costs.status());
    ImaginedGroup imagined(question, *options, *costs);
    text = answer(question, imagined.group(), *options);
  } else {
    Result<BareJob> job = BareJob::join();
    if (!job.ok()) return exit_status(job.status());
    Group& group = job->lane->group();
    text = answer(question, group, job->options);
    if (group.rank() != 0) return text.ok() ? 0 : 1;
  }
  if (!text.ok()) return exit_status(text.status());
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace allring::bench
