#include "collectives/transport/cost_parameters.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>

namespace allring {
namespace {

std::string refusal(const std::string& text) {
  const Result<CostParameters> costs = CostParameters::parse(text);
  if (costs.ok()) return "";
  CHECK(costs.status().code() == StatusCode::kInvalidArgument);
  return costs.status().message();
}

TEST_CASE("what is written is read") {
  CostParameters costs;
  costs.host_memory.line_us = 0.1;
  costs.within_host.us_per_byte = 1 / 3.0;
  costs.between_hosts.overhead_us = 1e-9;
  costs.reduce_us_per_byte = 12345.678;
  CHECK(CostParameters::parse(costs.to_text()).value() == costs);
  CHECK(CostParameters::parse("").value() == CostParameters());
  CHECK(CostParameters().to_text().find("host_memory.line_us 0.15\n") == 0);
}

TEST_CASE("what is not named keeps its default, and comments are none of it") {
  const CostParameters costs =
      CostParameters::parse("# measured\n\n  between_hosts.alpha_us   12 # us\n").value();
  CHECK(costs.between_hosts.alpha_us == 12);
  CHECK(costs.between_hosts.overhead_us == CostParameters().between_hosts.overhead_us);
}

TEST_CASE("what cannot be meant is refused with its line") {
  CHECK(refusal("\nspeed 1").find("line 2: there is no \"speed\"") == 0);
  CHECK(refusal("speed 1").find("host_memory.line_us") != std::string::npos);
  CHECK(refusal("reduce_us_per_byte 1\nreduce_us_per_byte 1")
            .find("line 2: reduce_us_per_byte "
                  "comes twice") == 0);
  for (const char* value : {"", "0", "-1", "nan", "inf", "1x", "1 2", "1e999"}) {
    INFO(value);
    CHECK(refusal(std::string("reduce_us_per_byte ") + value).find("a positive number") !=
          std::string::npos);
  }
}

TEST_CASE("files") {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/tuning";
  std::ofstream(path) << "host_memory.flag_us 2\n";
  CHECK(CostParameters::load(path).value().host_memory.flag_us == 2);
  CHECK(CostParameters::load("").value() == CostParameters());
  std::ofstream(path) << "host_memory.flag_us two\n";
  CHECK(CostParameters::load(path).status().message().find("TUNING_FILE=\"" + path +
                                                           "\": line 1: ") == 0);
  CHECK(CostParameters::load("/nowhere/tuning").status().message().find("cannot be read") !=
        std::string::npos);
}

}  // namespace
}  // namespace allring
