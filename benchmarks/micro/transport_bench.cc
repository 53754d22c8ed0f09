// What carries bytes within a host, below any algorithm: rings in shared memory, the in-process
// network, and HostMemory's flags and lines. "alone" is the cost of the code without a peer to wait
// for; the others are two threads, one per rank, and want a core for each.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "collectives/communicator/communicator.h"
#include "collectives/transport/heap_host_memory.h"
#include "collectives/transport/inproc.h"
#include "collectives/transport/shm_ring.h"

namespace allring {
namespace {

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

/// Zeroed, and aligned to a page.
std::shared_ptr<std::byte> pages(std::size_t bytes) {
  const std::size_t rounded = (bytes + 4095) / 4096 * 4096;
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::aligned_alloc(4096, rounded)),
                                    [](std::byte* p) { std::free(p); });
  std::memset(memory.get(), 0, rounded);
  return memory;
}

struct Ring {
  static constexpr std::size_t kCapacity = 1 << 20;
  std::shared_ptr<std::byte> memory = pages(shm_ring_bytes(kCapacity));
  ShmRingWriter writer{{memory.get(), shm_ring_bytes(kCapacity)}};
  ShmRingReader reader{{memory.get(), shm_ring_bytes(kCapacity)}};
};

void shm_ring_alone(benchmark::State& state) {
  Ring ring;
  std::vector<std::byte> source(state.range(0)), target(state.range(0));
  const Link::Source out[] = {source};
  const Link::Sink in[] = {target};
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring.writer.write(out));
    benchmark::DoNotOptimize(ring.reader.read(in));
  }
  count_bytes(state);
}
BENCHMARK(shm_ring_alone)->RangeMultiplier(16)->Range(64, 256 << 10);

void inproc_alone(benchmark::State& state) {
  InprocNetwork network(2);
  std::vector<std::byte> source(state.range(0)), target(state.range(0));
  Tag tag = 0;
  for (auto _ : state) {
    ++tag;
    const Ticket receive = network.transport(1).post_recv(0, tag, target).value();
    const Ticket send = network.transport(0).post_send(1, tag, source).value();
    if (!network.transport(0).wait(send, kNoDeadline).ok() ||
        !network.transport(1).wait(receive, kNoDeadline).ok())
      return state.SkipWithError("the network failed");
  }
  count_bytes(state);
}
BENCHMARK(inproc_alone)->RangeMultiplier(16)->Range(64, 256 << 10);

/// Two ranks over one HostMemory. Benchmarks of two threads share one, made by the first.
struct Pair {
  Pair()
      : memory(make_heap_host_memory({.ranks = 2, .buffers = 3, .slot_bytes = 256 << 10},
                                     WaitPolicy::choose(2))),
        network(2) {
    for (Rank rank = 0; rank < 2; ++rank) {
      groups.push_back(std::make_unique<Group>(Topology::single_host(2), network.transport(rank),
                                               memory[rank].get()));
    }
  }
  std::vector<std::unique_ptr<HostMemory>> memory;
  InprocNetwork network;
  std::vector<std::unique_ptr<Group>> groups;
};
std::unique_ptr<Pair> pair;

void make_pair(const benchmark::State&) { pair = std::make_unique<Pair>(); }
void drop_pair(const benchmark::State&) { pair.reset(); }

void flag_alone(benchmark::State& state) {
  std::uint32_t value = 0;
  for (auto _ : state) {
    pair->memory[0]->post(0, ++value);
    if (!pair->memory[1]->wait_at_least(0, 0, value, kNoDeadline).ok())
      return state.SkipWithError("waiting failed");
  }
}
BENCHMARK(flag_alone)->Setup(make_pair)->Teardown(drop_pair);

/// There and back.
void flag_ping_pong(benchmark::State& state) {
  const Rank rank = state.thread_index();
  std::uint32_t value = 0;
  for (auto _ : state) {
    ++value;
    HostMemory& memory = *pair->memory[rank];
    if (rank == 0) memory.post(0, value);
    if (!memory.wait_at_least(0, 1 - rank, value, kNoDeadline).ok())
      return state.SkipWithError("waiting failed");
    if (rank == 1) memory.post(0, value);
  }
}
BENCHMARK(flag_ping_pong)->Setup(make_pair)->Teardown(drop_pair)->Threads(2)->UseRealTime();

/// An allreduce on a row of shared memory.
void row(benchmark::State& state, const char* name) {
  Communicator communicator(*pair->groups[state.thread_index()],
                            ForcedAlgorithms::parse(name).value());
  std::vector<float> data(state.range(0) / sizeof(float));
  for (auto _ : state) {
    if (!communicator.allreduce(data.data(), data.data(), data.size(), {}, kNoDeadline).ok())
      return state.SkipWithError("the allreduce failed");
  }
  count_bytes(state);
}
#define ALLRING_ROW(name)             \
  BENCHMARK_CAPTURE(row, name, #name) \
      ->Setup(make_pair)              \
      ->Teardown(drop_pair)           \
      ->Threads(2)                    \
      ->UseRealTime()
ALLRING_ROW(line)->Arg(8)->Arg(56);
ALLRING_ROW(oneshot)->RangeMultiplier(8)->Range(64, 32 << 10);
ALLRING_ROW(push)->RangeMultiplier(8)->Range(4 << 10, 16 << 20);

}  // namespace
}  // namespace allring

BENCHMARK_MAIN();
