// small_message PART: calls one part of a small message's path 1000 times in measured(), for
// small_message_test to count instructions. One thread, and nothing that waits: the peers are
// there always.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectives/communicator/communicator.h"
#include "collectives/transport/heap_host_memory.h"
#include "collectives/transport/inproc.h"
#include "runtime/execution/run_batch.h"
#include "runtime/negotiation/controller.h"
#include "runtime/negotiation/inproc_control_channel.h"
#include "runtime/request/tensor_queue.h"
#include "runtime/strategy/synchronous_allreduce.h"

namespace allring {
namespace {

using Work = std::function<void()>;

void require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "small_message: %s\n", status.to_string().c_str());
  std::exit(1);
}

/// Rank 0 of two ranks that share memory. All that rank 1 would ever post is there from the start.
class PairOfRanks {
 public:
  PairOfRanks()
      : memory_(make_heap_host_memory({.ranks = 2, .buffers = 3, .slot_bytes = 4096}, {})),
        network_(2),
        group_(Topology::single_host(2), network_.transport(0), memory_[0].get()),
        communicator_(group_, {}) {
    for (int flag = 0; flag < HostMemory::kFlagLines; ++flag) memory_[1]->post(flag, 1u << 30);
    // A line ends with the number of its message.
    const std::uint64_t latest = std::uint64_t{1} << 62;
    for (int parity = 0; parity < 2; ++parity)
      std::memcpy(memory_[1]->line(parity, 1) + 56, &latest, sizeof(latest));
  }

  Communicator& communicator() { return communicator_; }

 private:
  std::vector<std::unique_ptr<HostMemory>> memory_;
  InprocNetwork network_;
  Group group_;
  Communicator communicator_;
};

Work allreduce(std::size_t count) {
  return [pair = std::make_shared<PairOfRanks>(), data = std::vector<float>(count)]() mutable {
    require(pair->communicator().allreduce(data.data(), data.data(), data.size(), {}, kNoDeadline));
  };
}

Submission two_floats(const std::string& name, float* data) {
  Submission submission;
  submission.request.name = name;
  submission.request.shape = {2};
  submission.view = {data, data};
  submission.done = [](const Completion&) {};
  return submission;
}

/// From the caller to the coordinator, and the end.
Work queue() {
  return [queue = std::make_shared<TensorQueue>([] {}),
          data = std::make_shared<std::array<float, 2>>()] {
    std::vector<Submission> submissions;
    submissions.push_back(two_floats("gradient.0", data->data()));
    require(queue->push(std::move(submissions)));
    for (Submission& taken : queue->take()) queue->complete(std::move(taken), {});
  };
}

/// Two ranks agree on a tensor that they know already: all that both coordinators do.
class Agreement {
 public:
  Agreement() {
    InprocControlHub hub(2);
    Controller::Settings settings;
    settings.group.members = {0, 1};
    settings.group.descriptions = {"rank 0 (host h)", "rank 1 (host h)"};
    settings.group.fusion = {4 << 20, 64 << 10};
    for (Rank rank = 0; rank < 2; ++rank) {
      channels_.push_back(hub.channel(rank));
      controllers_.push_back(std::make_unique<Controller>(*channels_[rank], settings, TimePoint()));
    }
  }

  void run() {
    for (const Rank rank : {1, 0}) {
      std::vector<Submission> submissions;
      submissions.push_back(two_floats("gradient.0", data_));
      controllers_[rank]->submit(std::move(submissions), TimePoint());
    }
    // What rank 1 announced, and what the root decides.
    controllers_[0]->handle(channels_[0]->receive(TimePoint()), TimePoint());
    controllers_[0]->advance(TimePoint(), false);
    controllers_[1]->handle(channels_[1]->receive(TimePoint()), TimePoint());
    for (const auto& controller : controllers_) {
      const std::vector<Outcome> outcomes = controller->take_outcomes();
      if (outcomes.size() != 1 || !std::holds_alternative<Decided>(outcomes.front()))
        require(Status::internal("the ranks have not agreed"));
    }
  }

 private:
  float data_[2] = {};
  std::vector<std::unique_ptr<ControlChannel>> channels_;
  std::vector<std::unique_ptr<Controller>> controllers_;
};

Work agree() {
  return [agreement = std::make_shared<Agreement>()] { agreement->run(); };
}

/// What a lane does with a batch of so many tensors.
Work run_batch_of(int tensors) {
  struct State {
    PairOfRanks ranks;
    SynchronousAllreduce strategy;
    Scratch scratch;
    float data[2] = {};
  };
  return [state = std::make_shared<State>(), tensors] {
    Batch batch;
    for (int i = 0; i < tensors; ++i) {
      BatchTensor& tensor = batch.tensors.emplace_back();
      tensor.submission = two_floats("gradient." + std::to_string(i), state->data);
    }
    require(run_batch(batch, state->ranks.communicator(), state->strategy, state->scratch));
  };
}

const std::map<std::string, std::function<Work()>> kParts = {
    {"line", [] { return allreduce(2); }},
    {"oneshot", [] { return allreduce(256); }},
    {"queue", queue},
    {"agree", agree},
    {"run_batch", [] { return run_batch_of(1); }},
    {"run_fused_batch", [] { return run_batch_of(4); }},
};

}  // namespace
}  // namespace allring

// callgrind counts what happens in here.
extern "C" __attribute__((noinline)) void measured(const std::function<void()>& work) {
  for (int i = 0; i < 1000; ++i) work();
}

int main(int argc, char** argv) {
  const auto part = allring::kParts.find(argc > 1 ? argv[1] : "");
  // Which instruction set is best here depends on the machine.
  if (part == allring::kParts.end() || !allring::set_simd("scalar").ok()) return 2;
  const auto work = part->second();
  // What is allocated, remembered or chosen once.
  for (int i = 0; i < 100; ++i) work();
  measured(work);
  return 0;
}
