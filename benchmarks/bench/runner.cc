#include "benchmarks/bench/runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "benchmarks/bench/pattern.h"

namespace allring::bench {

namespace {

constexpr std::size_t kFreshBytes = 16 << 10;
constexpr int kCallsPerSample = 50;

double now_us() {
  using std::chrono::duration;
  return duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Plain private memory, page aligned and touched.
class Memory {
 public:
  explicit Memory(std::size_t bytes)
      : bytes_(std::max<std::size_t>(bytes, 64)),
        data_(static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{4096}))) {
    std::memset(data_, 0, bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete (data_, std::align_val_t{4096}); }
  std::byte* data() { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

/// Writes every cache line of `memory` without changing it, as a backward pass would write
/// gradients.
void rewrite(std::byte* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) {
    auto* line = const_cast<volatile std::byte*>(memory + i);
    *line = *line;
  }
}

Timing summarise(std::vector<double>& samples) {
  std::sort(samples.begin(), samples.end());
  return {samples.front(), samples[samples.size() / 2], samples.back()};
}

Status check_result(Contestant& contestant, const Call& call, void* input,
                    Measurement* measurement) {
  fill_input(call, contestant.rank(), contestant.size(), input);
  ALLRING_RETURN_IF_ERROR(contestant.run(call));
  std::vector<double> wrong{
      static_cast<double>(count_wrong(call, contestant.rank(), contestant.size()))};
  ALLRING_RETURN_IF_ERROR(contestant.max_over_ranks(wrong));
  measurement->wrong = static_cast<std::int64_t>(wrong[0]);
  return {};
}

Status sample(Contestant& contestant, const Call& call, std::byte* input, std::size_t input_bytes,
              int iterations, std::vector<double>* samples) {
  const bool fresh = input_bytes >= kFreshBytes;
  for (int i = 0; i < iterations; ++i) {
    const int calls = fresh ? 1 : kCallsPerSample;
    if (fresh) rewrite(input, input_bytes);
    ALLRING_RETURN_IF_ERROR(contestant.barrier());
    const double start = now_us();
    for (int k = 0; k < calls; ++k) ALLRING_RETURN_IF_ERROR(contestant.run(call));
    samples->push_back((now_us() - start) / calls);
  }
  return contestant.max_over_ranks(*samples);
}

}  // namespace

double Measurement::algbw_gbps() const {
  return time.median_us > 0 ? static_cast<double>(bytes) / time.median_us / 1e3 : 0;
}

double Measurement::busbw_gbps(int size) const {
  const double n = size;
  switch (collective) {
    case CollectiveKind::kAllreduce:
      return algbw_gbps() * 2 * (n - 1) / n;
    case CollectiveKind::kBroadcast:
      return algbw_gbps();
    default:
      return algbw_gbps() * (n - 1) / n;
  }
}

bool has_in_place(CollectiveKind kind) {
  return kind == CollectiveKind::kAllreduce || kind == CollectiveKind::kBroadcast;
}

Result<Measurement> measure(Contestant& contestant, const Arguments& arguments, std::size_t bytes,
                            bool in_place) {
  const auto size = static_cast<std::size_t>(contestant.size());
  Measurement result;
  result.collective = arguments.collective;
  result.dtype = arguments.dtype;
  result.op = arguments.op;
  result.layer = contestant.layer();
  result.in_place = in_place;

  Call call;
  call.kind = arguments.collective;
  call.dtype = arguments.dtype;
  call.op = arguments.op;
  call.root = arguments.root;
  call.count = bytes / element_bytes(arguments.dtype);
  const bool parts =
      call.kind != CollectiveKind::kAllreduce && call.kind != CollectiveKind::kBroadcast;
  if (parts) call.count = std::max<std::size_t>(call.count / size, 1) * size;
  if (!parts && call.kind != CollectiveKind::kBarrier)
    call.count = std::max<std::size_t>(call.count, 1);
  if (call.kind == CollectiveKind::kBarrier) call.count = 0;
  result.count = call.count;
  result.bytes = call.count * element_bytes(call.dtype);

  Memory input(input_count(call, contestant.size()) * element_bytes(call.dtype));
  Memory output(output_count(call, contestant.size()) * element_bytes(call.dtype));
  call.input = input.data();
  call.output = in_place ? input.data() : output.data();

  if (arguments.check && call.kind != CollectiveKind::kBarrier)
    ALLRING_RETURN_IF_ERROR(check_result(contestant, call, input.data(), &result));
  result.algorithm = contestant.algorithm(call);
  for (int i = 0; i < arguments.warmup_iterations; ++i)
    ALLRING_RETURN_IF_ERROR(contestant.run(call));
  std::memset(input.data(), 0, input.bytes());  // repeated in-place sums stay finite
  std::vector<double> samples;
  ALLRING_RETURN_IF_ERROR(sample(contestant, call, input.data(),
                                 call.count == 0 ? 0 : input.bytes(), arguments.iterations,
                                 &samples));
  result.time = summarise(samples);
  return result;
}

}  // namespace allring::bench
