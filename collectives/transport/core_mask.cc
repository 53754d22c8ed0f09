#include "collectives/transport/core_mask.h"

#include <sched.h>

#include <bit>

namespace allring {

std::string this_core_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string mask;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return mask;  // more cores than it has bits
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    mask.resize(static_cast<std::size_t>(core / 8) + 1);
    mask.back() = static_cast<char>(mask.back() | 1 << (core % 8));
  }
  return mask;
}

int count_cores(std::span<const std::string_view> masks) {
  std::string all;
  for (const std::string_view mask : masks) {
    if (mask.size() > all.size()) all.resize(mask.size());
    for (std::size_t i = 0; i < mask.size(); ++i) all[i] = static_cast<char>(all[i] | mask[i]);
  }
  int count = 0;
  for (const char byte : all) count += std::popcount(static_cast<unsigned char>(byte));
  return count;
}

}  // namespace allring
