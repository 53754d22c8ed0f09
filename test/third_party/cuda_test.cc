// nvcc's objects link with ours. On a machine with a device, a kernel runs; without one, CUDA says
// so and nothing crashes.

#include <catch2/catch.hpp>
#include <vector>

#include "test/third_party/scale.h"

namespace allring::test {
namespace {

TEST_CASE("a kernel scales, or CUDA reports that there is no device") {
  std::vector<float> values(1000, 2.0f);
  const bool scaled = scale_on_device(values.data(), static_cast<int64_t>(values.size()), 1.5f);
  CHECK(scaled == (device_count() > 0));
  CHECK(values == std::vector<float>(1000, scaled ? 3.0f : 2.0f));
}

}  // namespace
}  // namespace allring::test
