// What hvdbench writes, field by field: scripts read it.
#include "benchmarks/bench/report.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace allring::bench {

namespace {

Measurement measurement(const std::string& impl, double median_us, bool in_place) {
  Measurement m;
  m.impl = impl;
  m.layer = impl == "allring" ? "core" : "mpi";
  m.algorithm = impl == "allring" ? "push" : "";
  m.in_place = in_place;
  m.bytes = 4000;
  m.count = 1000;
  m.time = {median_us / 2, median_us, median_us * 2};
  m.wrong = 0;
  return m;
}

std::vector<std::string> keys(const nlohmann::json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("each of ours is compared with the peer that follows it") {
  const std::vector<Measurement> results = {
      measurement("allring", 10, false), measurement("openmpi", 30, false),
      measurement("allring", 10, true), measurement("openmpi", 5, true)};
  const std::vector<Ratio> found = ratios(results);
  REQUIRE(found.size() == 2);
  CHECK(found[0].ratio == 3);
  CHECK_FALSE(found[0].in_place);
  CHECK(found[0].against == "openmpi");
  CHECK(found[1].ratio == 0.5);
  CHECK(found[1].in_place);
  CHECK(ratios(std::vector<Measurement>{measurement("allring", 1, false)}).empty());
}

TEST_CASE("the JSON has the fields that docs/hvdbench.md lists") {
  Setting setting;
  setting.size = 4;
  setting.hosts = 2;
  const std::vector<Measurement> results = {measurement("allring", 10, true),
                                            measurement("openmpi", 30, true)};
  const auto document = nlohmann::json::parse(to_json(setting, results));
  CHECK(document["np"] == 4);
  CHECK(document["hosts"] == 2);
  REQUIRE(document["results"].size() == 2);
  const auto& ours = document["results"][0];
  CHECK(keys(ours) == std::vector<std::string>{"algbw_GBps", "algorithm", "buffers", "busbw_GBps",
                                               "bytes", "collective", "dtype", "impl", "inplace",
                                               "layer", "op", "time_us", "wrong"});
  CHECK(ours["impl"] == "allring");
  CHECK(ours["collective"] == "allreduce");
  CHECK(ours["layer"] == "core");
  CHECK(ours["algorithm"] == "push");
  CHECK(ours["buffers"] == "private");
  CHECK(ours["dtype"] == "float32");
  CHECK(ours["op"] == "sum");
  CHECK(ours["inplace"] == true);
  CHECK(ours["bytes"] == 4000);
  CHECK(ours["time_us"] == nlohmann::json{{"min", 5.0}, {"median", 10.0}, {"max", 20.0}});
  CHECK(ours["algbw_GBps"].get<double>() == Approx(0.4));
  CHECK(ours["busbw_GBps"].get<double>() == Approx(0.6));
  CHECK(document["results"][1]["impl"] == "openmpi");
  CHECK(document["ratios"] == nlohmann::json::array({{{"collective", "allreduce"},
                                                      {"bytes", 4000},
                                                      {"buffers", "private"},
                                                      {"inplace", true},
                                                      {"against", "openmpi"},
                                                      {"ratio", 3.0}}}));
}

TEST_CASE("the CSV has a line per result and as many fields as its head") {
  const std::string text = to_csv({}, std::vector<Measurement>{measurement("allring", 10, true),
                                                               measurement("openmpi", 30, true)});
  const std::string head = text.substr(0, text.find('\n'));
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK(std::count(text.begin(), text.end(), ',') == 3 * std::count(head.begin(), head.end(), ','));
}

TEST_CASE("a file that cannot be written is named with the reason") {
  const Status status = write_file("/nonexistent/x.json", "{}");
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(status.to_string(),
             Catch::Contains("/nonexistent/x.json") && Catch::Contains("No such file"));
}

}  // namespace allring::bench
