#include <cuda_runtime.h>

#include "test/third_party/scale.h"

namespace allring::test {
namespace {

__global__ void scale(float* values, int64_t count, float factor) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

}  // namespace

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : -1;
}

bool scale_on_device(float* values, int64_t count, float factor) {
  constexpr int kThreads = 256;
  const size_t bytes = count * sizeof(float);
  float* device = nullptr;
  if (cudaMalloc(&device, bytes) != cudaSuccess) return false;
  bool ok = cudaMemcpy(device, values, bytes, cudaMemcpyHostToDevice) == cudaSuccess;
  if (ok) {
    scale<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads>>>(device, count,
                                                                                  factor);
    ok = cudaGetLastError() == cudaSuccess &&
         cudaMemcpy(values, device, bytes, cudaMemcpyDeviceToHost) == cudaSuccess;
  }
  return cudaFree(device) == cudaSuccess && ok;
}

}  // namespace allring::test
