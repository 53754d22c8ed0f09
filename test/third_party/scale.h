#pragma once

#include <cstdint>

namespace allring::test {

// The number of devices, or -1 where the driver is missing.
int device_count();

// Multiplies `count` floats in host memory by `factor` on the first device; false if CUDA refuses.
bool scale_on_device(float* values, int64_t count, float factor);

}  // namespace allring::test
