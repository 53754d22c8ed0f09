// Two processes that share memory, and that every probe gives a number. No time is asserted.
#include "benchmarks/bench/pair.h"

#include <catch2/catch.hpp>

#include "benchmarks/bench/probes.h"

namespace allring::bench {

namespace {

/// Catch2's assertions are for the first process alone.
Status expect(bool right, const char* what) {
  return right ? Status() : Status::internal(std::string("not so: ") + what);
}

}  // namespace

TEST_CASE("both sides meet, and get the same of both values") {
  const Status status = run_as_pair(64, [](Pair& pair) -> Status {
    for (int i = 0; i < 100; ++i) {
      ALLRING_ASSIGN_OR_RETURN(const double greater, pair.greater(i + pair.side()));
      ALLRING_RETURN_IF_ERROR(expect(greater == i + 1, "greater"));
      ALLRING_ASSIGN_OR_RETURN(const double sum, pair.sum(i + pair.side()));
      ALLRING_RETURN_IF_ERROR(expect(sum == 2 * i + 1, "sum"));
    }
    if (pair.side() == 1) pair.memory()[63] = std::byte{7};
    ALLRING_RETURN_IF_ERROR(pair.meet());
    return expect(pair.memory()[63] == std::byte{7}, "one memory");
  });
  CHECK(status.to_string() == "ok");
}

TEST_CASE("a failure of either side is a failure of the whole") {
  const int failing = GENERATE(0, 1);
  const Status status = run_as_pair(64, [failing](Pair& pair) -> Status {
    return expect(pair.side() != failing, "wanted to fail");
  });
  CHECK_FALSE(status.ok());
}

TEST_CASE("every probe gives a positive number") {
  constexpr std::size_t kBytes = 1 << 20;
  const Status status = run_as_pair(kBytes, [](Pair& pair) -> Status {
    for (const auto probe :
         {copy_rate, add_rate, read_rate, overwrite_written_rate, overwrite_read_rate}) {
      ALLRING_ASSIGN_OR_RETURN(const double value, probe(pair, kBytes));
      ALLRING_RETURN_IF_ERROR(expect(value > 0, "a rate"));
    }
    for (const auto probe : {line_one_way_ns, wake_up_us, tcp_rate, tcp_one_way_us}) {
      ALLRING_ASSIGN_OR_RETURN(const double value, probe(pair));
      ALLRING_RETURN_IF_ERROR(expect(value > 0, "a time or rate"));
    }
    return {};
  });
  CHECK(status.to_string() == "ok");
}

}  // namespace allring::bench
