#include "runtime/request/validate.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "runtime/request/wire.h"

using namespace allring;

namespace {

Request valid(CollectiveKind kind) {
  Request request;
  request.kind = kind;
  request.name = "t";
  request.shape = {6, 2};
  if (kind == CollectiveKind::kAlltoall) request.splits = {1, 2, 3};
  return request;
}

// Valid for 3 ranks, but for one thing.
Status with(CollectiveKind kind, const std::function<void(Request&)>& change) {
  Request request = valid(kind);
  change(request);
  return validate(request, 3);
}

}  // namespace

TEST_CASE("counts of elements") {
  CHECK(*element_count({}, DataType::kFloat32) == 1);
  const std::int64_t shape[] = {3, 4};
  CHECK(*element_count(shape, DataType::kFloat32) == 12);
  const std::int64_t empty[] = {std::int64_t{1} << 61, 0, 2};
  CHECK(*element_count(empty, DataType::kUint8) == 0);
  const std::int64_t too_empty[] = {std::int64_t{1} << 62, 0, 4};
  CHECK(!element_count(too_empty, DataType::kUint8).ok());
  const std::int64_t largest[] = {std::numeric_limits<std::int64_t>::max()};
  CHECK(element_count(largest, DataType::kUint8).ok());
  CHECK(!element_count(largest, DataType::kInt16).ok());
  const std::int64_t negative[] = {-1};
  CHECK(!element_count(negative, DataType::kUint8).ok());
}

TEST_CASE("valid requests of each kind") {
  for (int kind = 0; kind < 6; ++kind) CHECK(validate(valid(CollectiveKind(kind)), 3).ok());
}

TEST_CASE("what a caller can be told at once") {
  using Kind = CollectiveKind;
  const auto invalid = StatusCode::kInvalidArgument;
  CHECK(with(Kind::kAllreduce, [](Request& r) { r.name = ""; }).code() == invalid);
  CHECK(with(Kind::kAllreduce, [](Request& r) { r.name.assign(kMaxNameBytes + 1, 'x'); }).code() ==
        invalid);
  CHECK(with(Kind::kAllreduce, [](Request& r) { r.shape.assign(65, 1); }).code() == invalid);
  CHECK(with(Kind::kAllreduce, [](Request& r) { r.shape = {-1}; }).code() == invalid);
  CHECK(with(Kind::kAllreduce, [](Request& r) { r.prescale = NAN; }).code() == invalid);
  CHECK(with(Kind::kAllreduce, [](Request& r) { r.postscale = INFINITY; }).code() == invalid);
  CHECK(with(Kind::kAllreduce, [](Request& r) { r.op = ReduceOp::kAdasum; }).code() ==
        StatusCode::kUnsupported);
  CHECK(with(Kind::kAllreduce, [](Request& r) { r.device = 0; }).code() ==
        StatusCode::kUnsupported);
  CHECK(with(Kind::kAllreduce, [](Request& r) {
          r.dtype = DataType::kBool;
          r.op = ReduceOp::kAverage;
        }).code() == invalid);
  CHECK(with(Kind::kAllreduce, [](Request& r) { r.shape.clear(); }).ok());
  CHECK(with(Kind::kBroadcast, [](Request& r) { r.shape.clear(); }).ok());
  CHECK(with(Kind::kBroadcast, [](Request& r) { r.root = 3; }).code() == invalid);
  CHECK(with(Kind::kBroadcast, [](Request& r) { r.root = -1; }).code() == invalid);
  CHECK(with(Kind::kAllgather, [](Request& r) { r.shape.clear(); }).code() == invalid);
  CHECK(with(Kind::kReduceScatter, [](Request& r) { r.shape.clear(); }).code() == invalid);
  CHECK(with(Kind::kReduceScatter, [](Request& r) { r.op = ReduceOp::kMax; }).code() == invalid);
  CHECK(with(Kind::kAlltoall, [](Request& r) { r.shape.clear(); }).code() == invalid);
  CHECK(with(Kind::kAlltoall, [](Request& r) { r.splits = {1, 2}; }).code() == invalid);
  CHECK(with(Kind::kAlltoall, [](Request& r) { r.splits = {1, -2, 3}; }).code() == invalid);
  CHECK(with(Kind::kAlltoall, [](Request& r) { r.splits = {3, 3, 1}; }).code() == invalid);
  const auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(with(Kind::kAlltoall, [=](Request& r) { r.splits = {most, most, 2}; }).code() == invalid);
  // Fewer rows than there are may travel, as with Horovod.
  CHECK(with(Kind::kAlltoall, [](Request& r) { r.splits = {1, 1, 1}; }).ok());
}
