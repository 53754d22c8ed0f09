// Which tensors MPI is given in one bucket.
#include "benchmarks/bench/step_method.h"

#include <catch2/catch.hpp>

namespace allring::bench {

namespace {

std::vector<Tensor> tensors(std::initializer_list<std::size_t> counts) {
  std::vector<Tensor> made;
  for (const std::size_t count : counts) made.push_back({nullptr, count});
  return made;
}

std::vector<std::size_t> counts(const std::vector<Bucket>& buckets) {
  std::vector<std::size_t> found;
  for (const Bucket& bucket : buckets) found.push_back(bucket.count);
  return found;
}

}  // namespace

TEST_CASE("a bucket takes tensors until the next does not fit") {
  const auto buckets = fill_buckets(tensors({10, 10, 5, 20, 1}), 25 * 4);
  CHECK(counts(buckets) == std::vector<std::size_t>{25, 21});
  CHECK(buckets[0].first == 0);
  CHECK(buckets[0].last == 3);
  CHECK(buckets[1].last == 5);
}

TEST_CASE("a tensor as large as a bucket is alone") {
  CHECK(counts(fill_buckets(tensors({1, 25, 1, 70, 2, 3}), 25 * 4)) ==
        std::vector<std::size_t>{1, 25, 1, 70, 5});
}

TEST_CASE("no tensors, no buckets") { CHECK(fill_buckets({}, 100).empty()); }

}  // namespace allring::bench
