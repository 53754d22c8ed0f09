// Results of whole runtimes: every dtype and op, scales, fusion, groups, outputs in place.
#include <catch2/catch.hpp>
#include <cstring>
#include <mutex>
#include <vector>

#include "collectives/kernels/reduce.h"
#include "test/runtime/harness/inproc_job.h"

using namespace allring;
using namespace allring::test;

namespace {

// Elements of any dtype from and to double; the values used here are exact in all of them.
std::vector<std::byte> encode_elements(DataType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * element_bytes(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* at = bytes.data() + i * element_bytes(dtype);
    const auto put = [&](auto value) { std::memcpy(at, &value, sizeof value); };
    const float single = static_cast<float>(values[i]);
    std::uint16_t half = 0;
    switch (dtype) {
      case DataType::kUint8:
        put(static_cast<std::uint8_t>(values[i]));
        break;
      case DataType::kInt8:
        put(static_cast<std::int8_t>(values[i]));
        break;
      case DataType::kUint16:
        put(static_cast<std::uint16_t>(values[i]));
        break;
      case DataType::kInt16:
        put(static_cast<std::int16_t>(values[i]));
        break;
      case DataType::kInt32:
        put(static_cast<std::int32_t>(values[i]));
        break;
      case DataType::kInt64:
        put(static_cast<std::int64_t>(values[i]));
        break;
      case DataType::kFloat16:
        float32_to_float16(&half, &single, 1);
        put(half);
        break;
      case DataType::kBfloat16:
        float32_to_bfloat16(&half, &single, 1);
        put(half);
        break;
      case DataType::kFloat32:
        put(single);
        break;
      case DataType::kFloat64:
        put(values[i]);
        break;
      case DataType::kBool:
        put(static_cast<std::uint8_t>(values[i] != 0));
        break;
    }
  }
  return bytes;
}

// What rank contributes at place i.
double element(DataType dtype, Rank rank, std::size_t i) {
  if (dtype == DataType::kBool) return (i + rank) % 3 == 0;
  return static_cast<double>(1 + (i + 2 * rank) % 3);
}

std::vector<double> elements(DataType dtype, Rank rank, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(dtype, rank, i);
  return values;
}

std::vector<double> reduced(DataType dtype, ReduceOp op, int size, std::size_t count) {
  std::vector<double> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    double value = element(dtype, 0, i);
    for (Rank rank = 1; rank < size; ++rank) {
      const double other = element(dtype, rank, i);
      if (op == ReduceOp::kMin) value = std::min(value, other);
      if (op == ReduceOp::kMax) value = std::max(value, other);
      if (op == ReduceOp::kProduct) value *= other;
      if (op == ReduceOp::kSum || op == ReduceOp::kAverage) value += other;
    }
    result[i] = value;
  }
  return result;
}

// Failures of several threads, for the test's own.
class Complaints {
 public:
  void add(const std::string& text) {
    std::lock_guard lock(mutex_);
    if (first_.empty()) first_ = text;
  }
  std::string first() {
    std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  std::mutex mutex_;
  std::string first_;
};

}  // namespace

TEST_CASE("allreduce of every dtype and op, alone and fused") {
  constexpr int kSize = 4;
  InprocJob job(kSize);
  Complaints complaints;
  job.on_each([&](Rank rank) {
    struct Case {
      Request request;
      std::vector<std::byte> input, output, expected;
    };
    std::vector<Case> cases;
    for (int d = 0; d < kDataTypeCount; ++d) {
      for (const ReduceOp op : {ReduceOp::kAverage, ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kMax,
                                ReduceOp::kProduct}) {
        const auto dtype = static_cast<DataType>(d);
        if (dtype == DataType::kBool && op == ReduceOp::kAverage) continue;
        // The large ones stay alone, the small ones of one kind share a batch.
        for (const std::int64_t count : {5, 13, 70000}) {
          Request request =
              float_request(CollectiveKind::kAllreduce,
                            std::to_string(d) + "." + std::string(reduce_op_name(op)) + "." +
                                std::to_string(count),
                            count);
          request.dtype = dtype;
          request.op = op;
          std::vector<double> expected = reduced(dtype, op, kSize, count);
          for (double& value : expected) {
            if (op == ReduceOp::kAverage) value /= kSize;
            if (op == ReduceOp::kAverage && !is_floating(dtype)) value = std::trunc(value);
          }
          cases.push_back({request, encode_elements(dtype, elements(dtype, rank, count)),
                           std::vector<std::byte>(count * element_bytes(dtype)),
                           encode_elements(dtype, expected)});
        }
      }
    }
    std::vector<std::future<Completion>> futures;
    for (Case& one : cases)
      futures.push_back(submit(job.set(rank), one.request, one.input.data(), one.output.data()));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Completion completion = await(futures[i]);
      if (!completion.status.ok()) complaints.add(completion.status.to_string());
      if (cases[i].output != cases[i].expected) complaints.add(cases[i].request.name + " is wrong");
      if (completion.shape != cases[i].request.shape) complaints.add("shape");
    }
  });
  CHECK(complaints.first() == "");
}

TEST_CASE("scales come before and after") {
  constexpr int kSize = 2;
  InprocJob job(kSize);
  Complaints complaints;
  job.on_each([&](Rank rank) {
    for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16, DataType::kFloat32,
                                 DataType::kFloat64, DataType::kInt32}) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax}) {
        // Alone and packed; what it must be: postscale * op(prescale * x).
        std::vector<std::future<Completion>> futures;
        std::vector<std::vector<std::byte>> outputs(
            2, std::vector<std::byte>(40 * element_bytes(dtype)));
        const std::vector<std::byte> input = encode_elements(dtype, elements(dtype, rank, 40));
        std::vector<double> expected = reduced(dtype, op, kSize, 40);
        for (double& value : expected) value *= 4 * 0.5 / (op == ReduceOp::kAverage ? 2 : 1);
        if (dtype == DataType::kInt32)
          for (double& value : expected) value = std::trunc(value);
        for (int i = 0; i < 2; ++i) {
          Request request = float_request(CollectiveKind::kAllreduce, "s" + std::to_string(i), 40);
          request.dtype = dtype;
          request.op = op;
          request.prescale = 4;
          request.postscale = 0.5;
          futures.push_back(submit(job.set(rank), request, input.data(), outputs[i].data()));
        }
        for (int i = 0; i < 2; ++i) {
          const Completion completion = await(futures[i]);
          if (!completion.status.ok()) complaints.add(completion.status.to_string());
          if (outputs[i] != encode_elements(dtype, expected))
            complaints.add(std::string(data_type_name(dtype)) + " " +
                           std::string(reduce_op_name(op)) + " is wrong");
        }
      }
    }
    // Sums of 16-bit floats are scaled once they are complete: 60000 * 2 / 4 does not overflow.
    const std::vector<std::byte> large = encode_elements(DataType::kFloat16, {60000, 60000});
    std::vector<std::byte> output(large.size());
    Request request = float_request(CollectiveKind::kAllreduce, "large", 2);
    request.dtype = DataType::kFloat16;
    request.prescale = 4;
    request.postscale = 1.0 / 8;
    if (!await(submit(job.set(rank), request, large.data(), output.data())).status.ok() ||
        output != large)
      complaints.add("a scaled float16 sum overflows");
  });
  CHECK(complaints.first() == "");
}

TEST_CASE("reduce_scatter scales and averages") {
  constexpr int kSize = 3;
  InprocJob job(kSize);
  Complaints complaints;
  job.on_each([&](Rank rank) {
    for (const DataType dtype : {DataType::kFloat16, DataType::kFloat32, DataType::kInt64}) {
      Request request = float_request(CollectiveKind::kReduceScatter, "rs", 0);
      request.shape = {7, 2};
      request.dtype = dtype;
      request.op = ReduceOp::kAverage;
      request.prescale = 6;
      const std::vector<std::byte> input = encode_elements(dtype, elements(dtype, rank, 14));
      std::vector<double> expected = reduced(dtype, ReduceOp::kSum, kSize, 14);
      for (double& value : expected) value *= 2;
      const std::size_t first = rank == 0 ? 0 : rank == 1 ? 6 : 10;
      const std::size_t count = rank == 0 ? 6 : 4;
      expected = {expected.begin() + first, expected.begin() + first + count};
      const Completion completion = await(submit(job.set(rank), request, input.data(), nullptr));
      const std::vector<std::byte> bytes = encode_elements(dtype, expected);
      if (!completion.status.ok()) {
        complaints.add(completion.status.to_string());
      } else if (std::memcmp(completion.allocated.get(), bytes.data(), bytes.size()) != 0 ||
                 completion.shape[0] != (rank == 0 ? 3 : 2)) {
        complaints.add(std::string(data_type_name(dtype)) + " is wrong");
      }
    }
  });
  CHECK(complaints.first() == "");
}

TEST_CASE("in place, in the caller's output, and in memory of the library") {
  InprocJob job(2);
  Complaints complaints;
  job.on_each([&](Rank rank) {
    std::vector<float> in_place = {1, 2}, input = {3, 4}, output(2), root = {5, 6};
    auto a = submit(job.set(rank), float_request(CollectiveKind::kAllreduce, "a", 2),
                    in_place.data(), in_place.data());
    auto b = submit(job.set(rank), float_request(CollectiveKind::kAllreduce, "b", 2), input.data(),
                    output.data());
    auto c = submit(job.set(rank), float_request(CollectiveKind::kAllreduce, "c", 2), input.data(),
                    nullptr);
    Request broadcast = float_request(CollectiveKind::kBroadcast, "d", 2);
    broadcast.root = 1;
    if (rank == 0) root = {0, 0};
    auto d = submit(job.set(rank), broadcast, root.data(), nullptr);
    auto e = submit(job.set(rank), float_request(CollectiveKind::kBroadcast, "e", 2), input.data(),
                    input.data());
    for (auto* future : {&a, &b, &c, &d, &e}) {
      const Completion completion = await(*future);
      if (!completion.status.ok()) complaints.add(completion.status.to_string());
      const auto* got = reinterpret_cast<const float*>(completion.allocated.get());
      if (future == &c && (got[0] != 6 || got[1] != 8)) complaints.add("c");
      if (future == &d && (got[0] != 5 || got[1] != 6)) complaints.add("d");
    }
    if (in_place != std::vector<float>{2, 4}) complaints.add("a");
    if (output != std::vector<float>{6, 8}) complaints.add("b");
    if (input != std::vector<float>{3, 4}) complaints.add("the input has changed");
  });
  CHECK(complaints.first() == "");
}

TEST_CASE("scalars and empty tensors") {
  InprocJob job(3);
  Complaints complaints;
  job.on_each([&](Rank rank) {
    const float input = static_cast<float>(rank);
    float output = 0;
    Request scalar = float_request(CollectiveKind::kAllreduce, "scalar", 0);
    scalar.shape.clear();
    auto a = submit(job.set(rank), scalar, &input, &output);
    auto b = submit(job.set(rank), float_request(CollectiveKind::kAllreduce, "empty", 0), nullptr,
                    nullptr);
    auto c = submit(job.set(rank), float_request(CollectiveKind::kAllgather, "no rows", 0), nullptr,
                    nullptr);
    Request exchange = float_request(CollectiveKind::kAlltoall, "nothing", 0);
    exchange.splits = {0, 0, 0};
    auto d = submit(job.set(rank), exchange, nullptr, nullptr);
    auto e = submit(job.set(rank), float_request(CollectiveKind::kReduceScatter, "few", 1), &input,
                    nullptr);
    for (auto* future : {&a, &b, &c, &d, &e}) {
      const Completion completion = await(*future);
      if (!completion.status.ok()) complaints.add(completion.status.to_string());
      if (future == &e && completion.shape[0] != (rank == 0 ? 1 : 0)) complaints.add("few");
    }
    if (output != 3) complaints.add("scalar");
  });
  CHECK(complaints.first() == "");
}

TEST_CASE("groups are fused and complete") {
  InprocJob job(4);
  Complaints complaints;
  job.on_each([&](Rank rank) {
    std::vector<std::vector<float>> data(10, std::vector<float>(100, static_cast<float>(rank)));
    std::vector<Request> requests;
    std::vector<TensorView> views;
    for (int i = 0; i < 10; ++i) {
      requests.push_back(float_request(CollectiveKind::kAllreduce, "g." + std::to_string(i), 100));
      requests.back().group = "g";
      requests.back().group_size = 10;
      views.push_back({data[i].data(), data[i].data()});
    }
    // Ranks submit something else before or after it.
    float extra = 1;
    std::future<Completion> other;
    if (rank % 2)
      other =
          submit(job.set(rank), float_request(CollectiveKind::kAllreduce, "x", 1), &extra, &extra);
    auto futures = submit_group(job.set(rank), requests, views);
    if (rank % 2 == 0)
      other =
          submit(job.set(rank), float_request(CollectiveKind::kAllreduce, "x", 1), &extra, &extra);
    for (auto& future : futures)
      if (const Completion completion = await(future); !completion.status.ok())
        complaints.add(completion.status.to_string());
    if (!await(other).status.ok() || extra != 4) complaints.add("x");
    for (const auto& tensor : data)
      if (tensor != std::vector<float>(100, 6)) complaints.add("a member is wrong");
  });
  CHECK(complaints.first() == "");
}
