#include "benchmarks/bench/turns.h"

#include <catch2/catch.hpp>
#include <string>

namespace allring::bench {

TEST_CASE("two take turns, each with one sample that does not count before its block") {
  std::string calls;
  std::vector<Entrant> entrants;
  for (const char* name : {"a", "b"})
    entrants.push_back({[&calls, name]() -> Result<double> {
      calls += name;
      return static_cast<double>(calls.size());
    }});
  REQUIRE(sample_in_turns(entrants, 3).ok());
  CHECK(calls == "aabbbbaaaabb");
  CHECK(entrants[0].samples == std::vector<double>{2, 8, 10});
  CHECK(entrants[1].samples == std::vector<double>{4, 6, 12});
}

TEST_CASE("one alone is sampled without pauses") {
  int calls = 0;
  std::vector<Entrant> entrants = {{[&]() -> Result<double> { return ++calls; }}};
  REQUIRE(sample_in_turns(entrants, 25).ok());
  CHECK(calls == 25);
  CHECK(entrants[0].samples.size() == 25);
}

TEST_CASE("a failure ends it") {
  std::vector<Entrant> entrants = {
      {[]() -> Result<double> { return Status::peer_lost(1, "gone"); }},
      {[]() -> Result<double> { return 1.0; }}};
  CHECK(sample_in_turns(entrants, 3).code() == StatusCode::kPeerLost);
  CHECK(entrants[1].samples.empty());
}

}  // namespace allring::bench
