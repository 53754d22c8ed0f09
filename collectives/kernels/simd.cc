// Which table of kernels runs here.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <string>

#include "collectives/kernels/kernel_table.h"
#include "collectives/kernels/reduce.h"

namespace allring {

namespace kernels {

namespace {

// A pure choice by the processor, remembered; set_simd() is for the start of a process and for
// tests.
constinit std::atomic<const KernelTable*> chosen{nullptr};

const KernelTable& table(Simd simd) {
#if defined(__x86_64__)
  if (simd == Simd::kAvx512) return kAvx512Kernels;
  if (simd == Simd::kAvx2) return kAvx2Kernels;
#endif
  return kScalarKernels;
}

#if defined(__x86_64__)
// Clang 14's __builtin_cpu_supports() does not know it.
bool has_f16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

}  // namespace

const KernelTable& current_kernels() {
  const KernelTable* current = chosen.load(std::memory_order_acquire);
  if (current == nullptr) [[unlikely]] {
    const KernelTable* best = &table(best_simd());
    // Another thread may have been faster, or set_simd() have come between.
    if (chosen.compare_exchange_strong(current, best, std::memory_order_acq_rel)) current = best;
  }
  return *current;
}

}  // namespace kernels

Simd best_simd() {
#if defined(__x86_64__)
  // These also ask whether the operating system saves the registers.
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && kernels::has_f16c();
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return Simd::kAvx512;
  }
  if (avx2) return Simd::kAvx2;
#endif
  return Simd::kScalar;
}

Simd current_simd() { return static_cast<Simd>(kernels::current_kernels().simd); }

Status set_simd(std::string_view name) {
  constexpr std::string_view kNames[] = {"scalar", "avx2", "avx512"};
  const Simd best = best_simd();
  Simd wanted = best;
  if (name != "auto") {
    int found = -1;
    for (int i = 0; i < 3; ++i) {
      if (name == kNames[i]) found = i;
    }
    if (found < 0) {
      return Status::invalid_argument("SIMD=\"" + std::string(name) +
                                      "\": expected one of auto, scalar, avx2, avx512");
    }
    wanted = static_cast<Simd>(found);
    if (wanted > best) {
      return Status::unsupported("SIMD=\"" + std::string(name) + "\": this processor has " +
                                 std::string(kNames[static_cast<int>(best)]) +
                                 " at best; use auto");
    }
  }
  kernels::chosen.store(&kernels::table(wanted), std::memory_order_release);
  return {};
}

}  // namespace allring
