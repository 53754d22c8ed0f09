#pragma once

namespace allring {

/// Tells the core that it is in a loop that waits for another one.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace allring
