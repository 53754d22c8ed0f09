#include "runtime/core/runtime.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <random>

#include "test/runtime/harness/inproc_job.h"

using namespace allring;
using namespace allring::test;

namespace {

// A collective of the mixed test: what each rank submits, and what it must get.
struct Item {
  Request request;
  std::vector<float> input;
  std::vector<float> expected;
};

float value(Rank rank, int item, std::int64_t i) {
  return static_cast<float>((rank + 1) * (item % 7 + 1) + i % 5);
}

std::vector<float> values(Rank rank, int item, std::int64_t count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) result[i] = value(rank, item, i);
  return result;
}

Item allreduce_item(int item, Rank rank, int size) {
  const std::int64_t count = 1 + (item * 37) % 200;
  Item result{float_request(CollectiveKind::kAllreduce, "ar" + std::to_string(item), count),
              values(rank, item, count), std::vector<float>(count)};
  for (Rank r = 0; r < size; ++r)
    for (std::int64_t i = 0; i < count; ++i) result.expected[i] += value(r, item, i);
  return result;
}

Item allgather_item(int item, Rank rank, int size) {
  Item result{float_request(CollectiveKind::kAllgather, "ag" + std::to_string(item), 0), {}, {}};
  const auto rows = [&](Rank r) { return (r + item) % 4; };
  result.request.shape = {rows(rank), 3};
  result.input = values(rank, item, rows(rank) * 3);
  for (Rank r = 0; r < size; ++r) {
    const std::vector<float> part = values(r, item, rows(r) * 3);
    result.expected.insert(result.expected.end(), part.begin(), part.end());
  }
  return result;
}

Item broadcast_item(int item, Rank rank, int size) {
  const Rank root = item % size;
  Item result{float_request(CollectiveKind::kBroadcast, "bc" + std::to_string(item), 17),
              values(rank, item, 17), values(root, item, 17)};
  result.request.root = root;
  return result;
}

Item reduce_scatter_item(int item, Rank rank, int size) {
  const std::int64_t rows = 2 * size + 1;
  Item result{float_request(CollectiveKind::kReduceScatter, "rs" + std::to_string(item), 0),
              values(rank, item, rows * 2),
              {}};
  result.request.shape = {rows, 2};
  const std::int64_t first = rank == 0 ? 0 : 2 * rank + 1;
  const std::int64_t kept = rank == 0 ? 3 : 2;
  for (std::int64_t i = first * 2; i < (first + kept) * 2; ++i) {
    float sum = 0;
    for (Rank r = 0; r < size; ++r) sum += value(r, item, i);
    result.expected.push_back(sum);
  }
  return result;
}

Item alltoall_item(int item, Rank rank, int size) {
  Item result{float_request(CollectiveKind::kAlltoall, "aa" + std::to_string(item), 0), {}, {}};
  const auto rows = [&](Rank from, Rank to) { return (from + 2 * to + item) % 3; };
  std::int64_t total = 0;
  for (Rank to = 0; to < size; ++to) {
    result.request.splits.push_back(rows(rank, to));
    total += rows(rank, to);
  }
  result.request.shape = {total, 2};
  result.input = values(rank, item, total * 2);
  for (Rank from = 0; from < size; ++from) {
    std::int64_t before = 0, all = 0;
    for (Rank to = 0; to < size; ++to) {
      if (to < rank) before += rows(from, to);
      all += rows(from, to);
    }
    const std::vector<float> sent = values(from, item, all * 2);
    result.expected.insert(result.expected.end(), sent.begin() + before * 2,
                           sent.begin() + (before + rows(from, rank)) * 2);
  }
  return result;
}

Item make_item(int item, Rank rank, int size) {
  switch (item % 6) {
    case 0:
      return allgather_item(item, rank, size);
    case 1:
      return broadcast_item(item, rank, size);
    case 2:
      return reduce_scatter_item(item, rank, size);
    case 3:
      return alltoall_item(item, rank, size);
    default:
      return allreduce_item(item, rank, size);
  }
}

std::string check(const Item& item, const Completion& completion, const std::vector<float>& own) {
  if (!completion.status.ok()) return item.request.name + ": " + completion.status.to_string();
  const float* got = completion.allocated
                         ? reinterpret_cast<const float*>(completion.allocated.get())
                         : own.data();
  for (std::size_t i = 0; i < item.expected.size(); ++i)
    if (got[i] != item.expected[i])
      return item.request.name + "[" + std::to_string(i) + "] is " + std::to_string(got[i]) +
             ", expected " + std::to_string(item.expected[i]);
  return "";
}

// Each rank submits the same items in its own random order, some rounds of it, and checks all
// results.
void mixed(InprocJob& job, int items, int rounds, unsigned seed) {
  INFO("seed " << seed << ", " << job.size() << " ranks");
  std::vector<std::string> failures(job.size());
  job.on_each([&](Rank rank) {
    std::mt19937 random(seed * 1000 + rank);
    for (int round = 0; round < rounds; ++round) {
      std::vector<int> order(items);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<Item> submitted;
      std::vector<std::vector<float>> outputs;
      std::vector<std::future<Completion>> futures;
      for (int i : order) {
        submitted.push_back(make_item(i, rank, job.size()));
        const bool same_shape = i % 6 == 1 || i % 6 > 3;
        outputs.emplace_back(same_shape ? submitted.back().input.size() : 0);
      }
      for (int i = 0; i < items; ++i)
        futures.push_back(submit(job.set(rank), submitted[i].request, submitted[i].input.data(),
                                 outputs[i].empty() ? nullptr : outputs[i].data()));
      for (int i = 0; i < items; ++i) {
        const std::string failure = check(submitted[i], await(futures[i]), outputs[i]);
        if (failures[rank].empty()) failures[rank] = failure;
      }
    }
  });
  for (const std::string& failure : failures) CHECK(failure == "");
}

}  // namespace

TEST_CASE("ranks submit all kinds in different orders") {
  for (const int size : {1, 2, 3, 4, 8}) {
    InprocJob job(size);
    mixed(job, 60, 3, 17 + size);
  }
}

TEST_CASE("several lanes") {
  Options options;
  options.lanes = 3;
  InprocJob job(4, options);
  mixed(job, 60, 5, 99);
}

TEST_CASE("hosts of different sizes, without shared memory") {
  Options options;
  options.shared_memory = false;
  InprocJob job(Topology({"a", "a", "b", "b", "b"}), options);
  mixed(job, 40, 2, 5);
}

TEST_CASE("two hosts with shared memory each") {
  InprocJob job(Topology({"a", "a", "b", "b"}), {});
  mixed(job, 40, 2, 6);
}
