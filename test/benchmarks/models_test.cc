// The tensors of a step are those of the models as published.
#include "benchmarks/bench/models.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace allring::bench {

TEST_CASE("ResNet-50 has 25.6 million parameters in 161 tensors") {
  const Model model = make_model("resnet50");
  CHECK(model.counts.size() == 161);
  CHECK(model.elements() == 25'557'032);
  CHECK(model.counts.front() == 64 * 3 * 7 * 7);
  CHECK(model.counts.back() == 1000);
  CHECK(*std::max_element(model.counts.begin(), model.counts.end()) == 512 * 512 * 3 * 3);
}

TEST_CASE("BERT-large with its heads has 336 million parameters in 398 tensors") {
  const Model model = make_model("bert-large");
  CHECK(model.counts.size() == 398);
  CHECK(model.elements() == 336'226'108);
  CHECK(model.bytes() == std::size_t{336'226'108} * 4);
  CHECK(model.counts.front() == 30522 * 1024);
}

TEST_CASE("many-small is 1000 tensors of 4 KiB") {
  const Model model = make_model("many-small");
  CHECK(model.counts.size() == 1000);
  CHECK(model.bytes() == std::size_t{1000} * 4096);
}

TEST_CASE("every name makes a model and others make none") {
  for (const std::string& name : model_names()) CHECK_FALSE(make_model(name).counts.empty());
  CHECK(make_model("resnet18").counts.empty());
}

}  // namespace allring::bench
