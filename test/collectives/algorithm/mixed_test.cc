// Random sequences of collectives on one group, each by a random row: what rows of one lane share
// (flags, slots, lines, tags, scratch memory) must stay right whatever follows whatever.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <random>
#include <thread>

#include "collectives/algorithm/oneshot.h"
#include "collectives/algorithm/slot_protocol.h"
#include "collectives/algorithm/slots_broadcast.h"
#include "test/collectives/algorithm/matrix.h"

namespace allring::test {
namespace {

/// Values whose sums are exact in every order.
std::int32_t value_of(Rank rank, std::size_t index, std::size_t turn) {
  return static_cast<std::int32_t>((rank + 1) * 1000003 + index * 7 + turn * 13);
}

std::vector<std::int32_t> values(Rank rank, std::size_t count, std::size_t turn) {
  std::vector<std::int32_t> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = value_of(rank, i, turn);
  return result;
}

std::vector<std::int32_t> sums(int size, std::size_t count, std::size_t turn) {
  std::vector<std::int32_t> result(count);
  for (Rank rank = 0; rank < size; ++rank) {
    for (std::size_t i = 0; i < count; ++i) result[i] += value_of(rank, i, turn);
  }
  return result;
}

/// Counts of all ranks; the same on all as `random` is.
std::vector<std::size_t> random_counts(int size, std::size_t most, std::mt19937_64& random) {
  std::vector<std::size_t> counts(size);
  for (std::size_t& count : counts) count = random() % 4 == 0 ? 0 : random() % (most + 1);
  return counts;
}

/// From one element to a few blocks.
std::size_t random_most(std::size_t block_elements, std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return 14;
    case 1:
      return block_elements;
    default:
      return 5 * block_elements;
  }
}

std::size_t begin_of(const std::vector<std::size_t>& counts, Rank rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

/// One collective chosen by `random`, by any row that supports it. Returns "" or what is wrong.
Result<std::string> run_one(Group& group, std::size_t turn, std::size_t block_elements,
                            std::mt19937_64& random) {
  const int size = group.size();
  const Rank rank = group.rank();
  const std::size_t most = random_most(block_elements, random);
  CollectiveArgs args;
  // Broadcasts let the root run ahead, and are therefore many.
  const std::uint64_t kind = random() % 9;
  args.kind = kind < 6 ? static_cast<CollectiveKind>(kind) : CollectiveKind::kBroadcast;
  args.reduction = {DataType::kInt32, ReduceOp::kSum, 1.0, 1};
  args.root = static_cast<Rank>(random() % size);
  std::vector<std::size_t> counts = random_counts(size, most, random);
  std::vector<std::size_t> recv_counts;
  std::vector<std::int32_t> input, output, expected;
  args.count = begin_of(counts, size);
  switch (args.kind) {
    case CollectiveKind::kAllreduce:
      args.count = random() % (most + 1);
      input = values(rank, args.count, turn);
      expected = sums(size, args.count, turn);
      break;
    case CollectiveKind::kReduceScatter: {
      input = values(rank, args.count, turn);
      const auto all = sums(size, args.count, turn);
      expected.assign(all.begin() + begin_of(counts, rank),
                      all.begin() + begin_of(counts, rank + 1));
      break;
    }
    case CollectiveKind::kAllgather:
      input = values(rank, counts[rank], turn);
      for (Rank from = 0; from < size; ++from) {
        const auto theirs = values(from, counts[from], turn);
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      break;
    case CollectiveKind::kBroadcast:
      args.count = random() % (most + 1);
      output = values(rank, args.count, turn);
      expected = values(args.root, args.count, turn);
      break;
    case CollectiveKind::kAlltoall: {
      std::vector<std::vector<std::size_t>> all;
      for (Rank from = 0; from < size; ++from) all.push_back(random_counts(size, most, random));
      counts = all[rank];
      args.count = begin_of(counts, size);
      input = values(rank, args.count, turn);
      for (Rank from = 0; from < size; ++from) {
        recv_counts.push_back(all[from][rank]);
        const std::size_t begin = begin_of(all[from], rank);
        for (std::size_t i = 0; i < all[from][rank]; ++i)
          expected.push_back(value_of(from, begin + i, turn));
      }
      break;
    }
    case CollectiveKind::kBarrier:
      break;
  }
  output.resize(expected.size(), -1);
  args.counts = counts;
  args.recv_counts = recv_counts;
  args.input = input.data();
  args.output = output.data();

  std::vector<const Algorithm*> rows;
  for (const Algorithm& row : algorithms(args.kind)) {
    if (row.supports(args, group)) rows.push_back(&row);
  }
  const Algorithm& row = *rows[random() % rows.size()];
  const std::string name = std::string(row.name) + " " +
                           std::string(collective_kind_name(args.kind)) + ", turn " +
                           std::to_string(turn);
  if (Status status = row.run(args, group, kNoDeadline); !status.ok())
    return status.with_prefix(name + ": ");
  return output == expected ? std::string() : name + " is wrong";
}

void check_sequence(
    const Cluster& cluster, std::uint64_t seed, std::size_t turns,
    const std::function<void(Group&)>& prepare = [](Group&) {}) {
  INFO("seed " << seed << ", " << cluster.host_of.size() << " ranks, host memory "
               << cluster.host_memory << ", slots of " << cluster.shape.slot_bytes << " bytes, "
               << cluster.shape.buffers << " buffers");
  const auto statuses = run_ranks(cluster, [&](Group& group) -> Status {
    prepare(group);
    std::mt19937_64 random(seed);
    std::mt19937_64 own_random(seed + group.rank());
    for (std::size_t turn = 0; turn < turns; ++turn) {
      if (own_random() % 4 == 0) {  // some are late, each time others
        for (std::uint64_t yields = own_random() % 64; yields > 0; --yields)
          std::this_thread::yield();
      }
      ALLRING_ASSIGN_OR_RETURN(
          const std::string problem,
          run_one(group, turn, cluster.shape.slot_bytes / sizeof(std::int32_t), random));
      if (!problem.empty()) return Status::internal(problem);
    }
    return {};
  });
  CHECK(failures(statuses) == "");
}

TEST_CASE("rows of one group follow each other in any order") {
  const std::uint64_t first_seed = Catch::rngSeed();
  for (std::uint64_t seed = first_seed; seed < first_seed + 12; ++seed) {
    std::mt19937_64 random(seed);
    constexpr Medium kMedia[] = {Medium::kInproc, Medium::kInprocRendezvous, Medium::kShm,
                                 Medium::kTcp};
    const int size = 2 + static_cast<int>(random() % 7);
    // Memory of the heap or, with a mesh, segments; over TCP the ranks cannot pass them.
    const Medium medium = kMedia[random() % 4];
    const bool host_memory = medium != Medium::kTcp && random() % 8 != 0;
    Cluster cluster = Cluster::one_host(size, medium, host_memory);
    cluster.shape.slot_bytes = 4096 << random() % 3;
    cluster.shape.buffers = 3 + static_cast<int>(random() % 3);
    cluster.wait = random() % 3 == 0 ? "block" : "auto";
    check_sequence(cluster, seed, 200);
  }
}

TEST_CASE("rows of several hosts follow each other in any order") {
  const std::uint64_t first_seed = Catch::rngSeed();
  for (std::uint64_t seed = first_seed; seed < first_seed + 6; ++seed) {
    Cluster cluster = seed % 3 == 0 ? Cluster::hosts({2, 1, 3}, Medium::kInprocRendezvous)
                                    : Cluster::hosts({3, 3}, Medium::kShm, seed % 3 == 1);
    cluster.shape.slot_bytes = 4096;
    // Ranks placed in turns, too.
    if (seed % 2 == 0)
      std::rotate(cluster.host_of.begin(), cluster.host_of.begin() + 1, cluster.host_of.end());
    check_sequence(cluster, seed, 120);
  }
}

TEST_CASE("the counts of blocks, lines and barriers go past 2^32") {
  const std::uint64_t seed = Catch::rngSeed();
  Cluster cluster = Cluster::one_host(3, Medium::kInproc, true);
  cluster.shape.slot_bytes = 4096;
  cluster.shape.buffers = 5;
  const std::uint64_t start = (std::uint64_t{1} << 32) - 40;
  check_sequence(cluster, seed, 150, [&](Group& group) {
    // As if so much had been done before.
    HostMemory& memory = *group.host_memory();
    memory.sequence(kNextBlock) = memory.sequence(kRetiredBlocks) = start;
    memory.sequence(kBarrierSequence) = start;
    for (std::uint32_t step : {start / 2, start}) {
      memory.post(kPublishedFlag, step);
      memory.post(kDoneFlag, step);
      memory.post(kBarrierFlag, step);
    }
    constexpr int kUnusedFlag = HostMemory::kFlagLines - 1;
    memory.post(kUnusedFlag, 1);
    for (Rank rank = 0; rank < group.size(); ++rank)
      (void)memory.wait_at_least(kUnusedFlag, rank, 1, kNoDeadline);
  });
}

TEST_CASE("a flag that rows leave alone does not fall behind by 2^31") {
  Cluster cluster = Cluster::one_host(2, Medium::kInproc, true);
  cluster.shape.slot_bytes = 4096;
  const auto statuses = run_ranks(cluster, [](Group& group) -> Status {
    // As if after so many broadcasts, in which only the root publishes.
    HostMemory& memory = *group.host_memory();
    constexpr std::uint64_t kStart = (std::uint64_t{1} << 31) - 2;
    memory.sequence(kNextBlock) = memory.sequence(kRetiredBlocks) = kStart;
    memory.post(kDoneFlag, kStart / 2);
    memory.post(kDoneFlag, kStart);
    constexpr int kUnusedFlag = HostMemory::kFlagLines - 1;
    memory.post(kUnusedFlag, 1);
    ALLRING_RETURN_IF_ERROR(memory.wait_at_least(kUnusedFlag, 1 - group.rank(), 1, kNoDeadline));
    std::vector<std::int32_t> data(100), sums(100);
    CollectiveArgs args;
    args.reduction = Reduction::resolve(DataType::kInt32, ReduceOp::kSum, 2, 1.0).value();
    args.input = data.data();
    args.output = sums.data();
    args.count = data.size();
    for (int turn = 0; turn < 8; ++turn)
      ALLRING_RETURN_IF_ERROR(kSlotsBroadcast.run(args, group, kNoDeadline));
    if (group.rank() == 1) return {};
    const Status alone = kOneshotAllreduce.run(args, group, TimePoint());
    return alone.code() == StatusCode::kTimedOut
               ? Status()
               : Status::internal("rank 0 did not wait for what rank 1 has not published");
  });
  CHECK(failures(statuses) == "");
}

}  // namespace
}  // namespace allring::test
