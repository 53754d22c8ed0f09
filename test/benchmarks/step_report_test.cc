#include "benchmarks/bench/step_report.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace allring::bench {

namespace {

const std::vector<StepResult> kResults = {
    {"allring", "runtime", "arena", {5, 10, 20}, 0},
    {"openmpi", "tensor by tensor", "private", {20, 30, 40}, 0},
    {"openmpi", "buckets of 1 MiB", "private", {20, 25, 40}, 0},
    {"openmpi", "buckets of 4 MiB", "private", {20, 50, 90}, 0},
};

}  // namespace

TEST_CASE("a step is compared with each of the peer's modes and with the best") {
  const auto ratios = step_ratios(kResults);
  REQUIRE(ratios.size() == 4);
  CHECK(ratios[0].ratio == 3);
  CHECK(ratios[0].mode == "tensor by tensor");
  CHECK(ratios[2].ratio == 5);
  CHECK(ratios[3].mode == "best");
  CHECK(ratios[3].ratio == 2.5);
  CHECK(ratios[3].against == "openmpi");
  CHECK(ratios[3].buffers == "arena");
  CHECK(step_ratios(std::span(kResults).first(1)).empty());
}

TEST_CASE("the JSON of a step has the fields that docs/hvdbench.md lists") {
  const Model model = make_model("many-small");
  Setting setting;
  setting.size = 2;
  const auto document = nlohmann::json::parse(step_json(model, setting, kResults));
  CHECK(document["np"] == 2);
  CHECK(document["hosts"] == 1);
  CHECK(document["model"] == "many-small");
  CHECK(document["tensors"] == 1000);
  CHECK(document["bytes"] == 4096000);
  CHECK(document["results"][0] ==
        nlohmann::json{{"impl", "allring"},
                       {"mode", "runtime"},
                       {"buffers", "arena"},
                       {"time_us", {{"min", 5.0}, {"median", 10.0}, {"max", 20.0}}},
                       {"wrong", 0}});
  CHECK(document["ratios"].back() == nlohmann::json{{"model", "many-small"},
                                                    {"buffers", "arena"},
                                                    {"against", "openmpi"},
                                                    {"mode", "best"},
                                                    {"ratio", 2.5}});
}

}  // namespace allring::bench
