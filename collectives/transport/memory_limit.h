#pragma once

#include <cstddef>
#include <string>

namespace allring {

/// How much memory could be had, and what stands in the way of more.
struct MemoryLimit {
  std::size_t free_bytes = 0;
  std::string
      name;  ///< "the memory limit of control group /jobs/7", "the machine's free memory", ..
};

/// The tightest of what applies to this process: free memory of the machine, limits of its control
/// groups (both versions) and RLIMIT_FSIZE, which holds for memory files too. To be asked before
/// memory is reserved: the kernel's answer to more than there is may be SIGKILL or SIGXFSZ.
/// @param root in which /proc and /sys are looked for; for tests.
MemoryLimit memory_limit(const std::string& root = "");

}  // namespace allring
