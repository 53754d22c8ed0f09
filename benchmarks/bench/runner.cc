#include "benchmarks/bench/runner.h"

#include <algorithm>
#include <cstring>

#include "benchmarks/bench/memory.h"
#include "benchmarks/bench/pattern.h"
#include "benchmarks/bench/turns.h"

namespace allring::bench {

namespace {

constexpr std::size_t kFreshBytes = 16 << 10;
constexpr int kCallsPerSample = 50;

Status check_result(Contestant& contestant, const Call& call, void* input,
                    Measurement* measurement) {
  fill_input(call, contestant.rank(), contestant.size(), input);
  ALLRING_RETURN_IF_ERROR(contestant.run_into_output(call));
  std::vector<double> wrong{
      static_cast<double>(count_wrong(call, contestant.rank(), contestant.size()))};
  ALLRING_RETURN_IF_ERROR(contestant.max_over_ranks(wrong));
  measurement->wrong = static_cast<std::int64_t>(wrong[0]);
  return {};
}

/// The time of one call of this rank, or the mean of several.
Result<double> sample(Contestant& contestant, Contestant& starter, const Call& call,
                      std::byte* input, std::size_t input_bytes) {
  const bool fresh = input_bytes >= kFreshBytes;
  const int calls = fresh ? 1 : kCallsPerSample;
  if (fresh) rewrite(input, input_bytes);
  ALLRING_RETURN_IF_ERROR(starter.barrier());
  const double start = now_us();
  for (int k = 0; k < calls; ++k) ALLRING_RETURN_IF_ERROR(contestant.run(call));
  return (now_us() - start) / calls;
}

/// Elements of a call of about `bytes`: at least one, and equal parts where there are parts.
std::size_t fitting_count(const Call& call, std::size_t bytes, std::size_t size) {
  const std::size_t count = bytes / element_bytes(call.dtype);
  switch (call.kind) {
    case CollectiveKind::kBarrier:
      return 0;
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBroadcast:
      return std::max<std::size_t>(count, 1);
    default:
      return std::max<std::size_t>(count / size, 1) * size;
  }
}

/// The memory of a call.
struct Place {
  Memory input;
  Memory output;
};

Result<Place> make_place(Contestant& contestant, const Call& call, const std::string& buffers) {
  const std::size_t element = element_bytes(call.dtype);
  ALLRING_ASSIGN_OR_RETURN(
      Memory input, contestant.allocate(buffers, input_count(call, contestant.size()) * element));
  ALLRING_ASSIGN_OR_RETURN(
      Memory output, contestant.allocate(buffers, output_count(call, contestant.size()) * element));
  return Place{std::move(input), std::move(output)};
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

Result<std::vector<Measurement>> measure(std::span<Contestant* const> contestants,
                                         const Arguments& arguments, std::size_t bytes,
                                         bool in_place) {
  const int size = contestants.front()->size();
  Call call;
  call.kind = arguments.collective;
  call.dtype = arguments.dtype;
  call.op = arguments.op;
  call.root = arguments.root;
  call.count = fitting_count(call, bytes, static_cast<std::size_t>(size));

  // A peer has what a program would give it, private memory: ours, if that is private.
  std::vector<Place> places;
  ALLRING_ASSIGN_OR_RETURN(Place mine, make_place(*contestants.front(), call, arguments.buffers));
  places.push_back(std::move(mine));
  if (contestants.size() > 1 && arguments.buffers != "private") {
    ALLRING_ASSIGN_OR_RETURN(Place peers, make_place(*contestants.back(), call, "private"));
    places.push_back(std::move(peers));
  }

  Contestant& starter = *contestants.back();
  std::vector<Measurement> results;
  std::vector<Entrant> entrants;
  for (Contestant* contestant : contestants) {
    Place& place = contestant == contestants.front() ? places.front() : places.back();
    call.input = place.input.data();
    call.output = in_place ? place.input.data() : place.output.data();
    Measurement result;
    result.collective = call.kind;
    result.dtype = call.dtype;
    result.op = call.op;
    result.impl = contestant->impl();
    result.layer = contestant->layer();
    result.buffers = &place == &places.front() ? arguments.buffers : "private";
    result.in_place = in_place;
    result.count = call.count;
    result.bytes = call.count * element_bytes(call.dtype);
    if (arguments.check && call.kind != CollectiveKind::kBarrier)
      ALLRING_RETURN_IF_ERROR(check_result(*contestant, call, place.input.data(), &result));
    result.algorithm = contestant->algorithm(call);
    for (int i = 0; i < arguments.warmup_iterations; ++i)
      ALLRING_RETURN_IF_ERROR(contestant->run(call));
    results.push_back(result);
    std::memset(place.input.data(), 0, place.input.bytes());  // repeated sums stay finite
    const std::size_t fresh_bytes = call.count == 0 ? 0 : place.input.bytes();
    entrants.push_back({[=, &place, &starter] {
      return sample(*contestant, starter, call, place.input.data(), fresh_bytes);
    }});
  }
  ALLRING_RETURN_IF_ERROR(sample_in_turns(entrants, arguments.iterations));
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    ALLRING_RETURN_IF_ERROR(contestants.front()->max_over_ranks(entrants[i].samples));
    results[i].time = summarise(entrants[i].samples);
  }
  return results;
}

}  // namespace allring::bench
