#include "benchmarks/bench/tune.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <sstream>
#include <vector>

#include "collectives/communicator/communicator.h"

namespace allring::bench {

namespace {

constexpr nanoseconds kPatience = seconds(60);
constexpr int kRounds = 11;
// Concurrent small messages, and the length of a long one.
constexpr int kMessages = 8;
constexpr std::size_t kSmallBytes = 8;
constexpr std::size_t kLongBytes = 4 << 20;
// No measured difference makes a cost vanish, by which every row would look alike.
constexpr double kLeastShare = 0.02;

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

class Tuner {
 public:
  explicit Tuner(Group& group) : group_(group), everyone_(group, {}) {}

  Result<Tuning> run() {
    const Topology& topology = group_.topology();
    Group* within = topology.hosts() == 1 ? &group_ : group_.local();
    if (within != nullptr && within->size() > 1 && within->host_memory() != nullptr)
      ALLRING_RETURN_IF_ERROR(measure_host_memory(*within));
    for (int host = 0; host < topology.hosts(); ++host) {
      const std::vector<Rank>& ranks = topology.ranks_on(host);
      if (ranks.size() < 2) continue;
      tuning_.within_host = true;
      ALLRING_RETURN_IF_ERROR(measure_messages(ranks[0], ranks[1], &tuning_.costs.within_host));
      break;
    }
    if (topology.hosts() > 1) {
      tuning_.between_hosts = true;
      ALLRING_RETURN_IF_ERROR(measure_messages(topology.ranks_on(0)[0], topology.ranks_on(1)[0],
                                               &tuning_.costs.between_hosts));
    }
    ALLRING_RETURN_IF_ERROR(measure_reduce());
    return tuning_;
  }

 private:
  Deadline deadline() const { return deadline_after(kPatience); }

  /// The median microseconds of `calls` calls in a row, per call; of the slowest rank. `prepare`
  /// comes before each round, untimed.
  Result<double> time(
      int calls, const std::function<Status()>& call,
      const std::function<void()>& prepare = [] {}) {
    std::vector<double> rounds;
    for (int round = -1; round < kRounds; ++round) {
      prepare();
      ALLRING_RETURN_IF_ERROR(everyone_.barrier(deadline()));
      const double start = now_us();
      for (int i = 0; i < calls; ++i) ALLRING_RETURN_IF_ERROR(call());
      double took = (now_us() - start) / calls;
      ALLRING_RETURN_IF_ERROR(
          everyone_.allreduce(&took, &took, 1, {DataType::kFloat64, ReduceOp::kMax}, deadline()));
      if (round >= 0) rounds.push_back(took);  // the first warms up
    }
    return median(rounds);
  }

  /// In the terms of these rows' own estimates, so that those are right for what was measured.
  Status measure_host_memory(Group& host) {
    tuning_.host_memory = true;
    CostParameters::Memory& memory = tuning_.costs.host_memory;
    const double others = host.size() - 1;
    const auto allreduce = [&](const char* row, std::size_t bytes, int calls) -> Result<double> {
      Communicator communicator(host, ForcedAlgorithms::parse(row).value());
      std::vector<float> data(bytes / sizeof(float));
      float value = 0;
      return time(
          calls,
          [&] {
            return communicator.allreduce(data.data(), data.data(), data.size(), {}, deadline());
          },
          // Gradients are fresh: their lines are dirty in the cache of their own rank.
          [&] { std::fill(data.begin(), data.end(), value += 1); });
    };
    ALLRING_ASSIGN_OR_RETURN(const double line, allreduce("line", kSmallBytes, 1000));
    ALLRING_ASSIGN_OR_RETURN(const double flag, allreduce("oneshot", kSmallBytes, 1000));
    constexpr std::size_t kBytes = 1 << 20;
    ALLRING_ASSIGN_OR_RETURN(const double push, allreduce("push", kBytes, 1));
    memory.line_us = line / others;
    memory.flag_us = flag / others;
    const double blocks = 1.0 + kBytes / host.host_memory()->slot_bytes();
    const double handing_over = 2 * blocks * memory.flag_us * others;
    memory.us_per_byte =
        std::max(push - handing_over, kLeastShare * push) / (2.0 * kBytes * others / host.size());
    return {};
  }

  /// Sends and receives so many messages of as many bytes.
  Status exchange(Rank peer, int sends, int receives, std::size_t bytes) {
    Transport& transport = group_.transport();
    sent_.resize(std::max(sent_.size(), bytes));
    received_.resize(std::max(received_.size(), bytes));
    std::vector<Ticket> tickets;
    for (int i = 0; i < receives; ++i) {
      ALLRING_ASSIGN_OR_RETURN(tickets.emplace_back(),
                               transport.post_recv(peer, tag_, {received_.data(), bytes}));
    }
    for (int i = 0; i < sends; ++i) {
      ALLRING_ASSIGN_OR_RETURN(tickets.emplace_back(),
                               transport.post_send(peer, tag_, {sent_.data(), bytes}));
    }
    for (const Ticket ticket : tickets) ALLRING_RETURN_IF_ERROR(transport.wait(ticket, deadline()));
    return {};
  }

  /// What `call` does between two ranks, once each, while the others wait.
  Result<double> time_pair(Rank first, Rank second, int calls,
                           const std::function<Status(Rank peer, bool starts)>& call) {
    return time(calls, [&]() -> Status {
      tag_ = group_.next_tag();
      if (group_.rank() == first) return call(second, true);
      if (group_.rank() == second) return call(first, false);
      return {};
    });
  }

  /// So many small messages there, then as many back: half of the time.
  Result<double> one_way(Rank first, Rank second, int messages) {
    ALLRING_ASSIGN_OR_RETURN(
        const double both_ways,
        time_pair(first, second, 100, [&](Rank peer, bool starts) -> Status {
          ALLRING_RETURN_IF_ERROR(
              exchange(peer, starts ? messages : 0, starts ? 0 : messages, kSmallBytes));
          return exchange(peer, starts ? 0 : messages, starts ? messages : 0, kSmallBytes);
        }));
    return both_ways / 2;
  }

  Status measure_messages(Rank first, Rank second, CostParameters::Messages* costs) {
    ALLRING_ASSIGN_OR_RETURN(const double one, one_way(first, second, 1));
    ALLRING_ASSIGN_OR_RETURN(const double many, one_way(first, second, kMessages));
    // Both ways at once, as collectives move bytes.
    ALLRING_ASSIGN_OR_RETURN(const double whole, time_pair(first, second, 1, [&](Rank peer, bool) {
                               return exchange(peer, 1, 1, kLongBytes);
                             }));
    costs->alpha_us = one;
    costs->overhead_us = std::max((many - one) / (kMessages - 1), kLeastShare * one);
    costs->us_per_byte = std::max(whole - one, kLeastShare * whole) / kLongBytes;
    return {};
  }

  Status measure_reduce() {
    std::vector<float> sum(64 << 10), received(sum.size());
    const std::size_t bytes = sum.size() * sizeof(float);
    ALLRING_ASSIGN_OR_RETURN(const double took, time(20, [&]() -> Status {
                               reduce2(sum.data(), sum.data(), received.data(), sum.size(), {});
                               return {};
                             }));
    tuning_.costs.reduce_us_per_byte = took / static_cast<double>(bytes);
    return {};
  }

  Group& group_;
  Communicator everyone_;
  Tuning tuning_;
  Tag tag_ = 0;
  std::vector<std::byte> sent_, received_;
};

}  // namespace

std::string Tuning::to_text(const Group& group) const {
  std::ostringstream text;
  text << "# Measured by hvdbench tune over " << group.size() << " ranks on "
       << group.topology().hosts() << " hosts. For ALLRING_TUNING_FILE, on all ranks.\n";
  const std::pair<bool, const char*> parts[] = {
      {host_memory, "host_memory"}, {within_host, "within_host"}, {between_hosts, "between_hosts"}};
  for (const auto& [measured, name] : parts) {
    if (!measured) text << "# Not measured, these are the defaults: " << name << '\n';
  }
  text << costs.to_text();
  return text.str();
}

Result<Tuning> tune(Group& group) { return Tuner(group).run(); }

}  // namespace allring::bench
