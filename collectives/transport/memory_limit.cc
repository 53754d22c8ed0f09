#include "collectives/transport/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace allring {

namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

/// The number in a file of one word; nullopt if there is no such file or it says "max".
std::optional<std::uint64_t> read_number(const std::string& path) {
  std::uint64_t value = 0;
  if (std::ifstream(path) >> value) return value;
  return std::nullopt;
}

/// The value after `key` in a file of "key value" lines.
std::uint64_t read_field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return 0;
}

struct GroupFiles {
  std::string mount;
  std::string limit;
  std::string usage;
  std::string stat_prefix;  ///< the first version counts a group's descendants under other names
};

const GroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                              "memory.usage_in_bytes", "total_"};
const GroupFiles kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current", ""};

/// Bytes that control group `path` may still use, file cache given back; nullopt if unlimited.
std::optional<std::uint64_t> left_in_group(const std::string& root, const GroupFiles& files,
                                           const std::string& path) {
  const std::string folder = root + files.mount + path + "/";
  const std::optional<std::uint64_t> limit = read_number(folder + files.limit);
  if (!limit) return std::nullopt;
  const std::uint64_t usage = read_number(folder + files.usage).value_or(0);
  const std::uint64_t cache =
      read_field(folder + "memory.stat", files.stat_prefix + "inactive_file") +
      read_field(folder + "memory.stat", files.stat_prefix + "active_file");
  const std::uint64_t held = usage - std::min(usage, cache);
  return *limit - std::min(*limit, held);
}

void apply(MemoryLimit* limit, std::uint64_t free_bytes, const std::string& name) {
  if (free_bytes < limit->free_bytes) *limit = {free_bytes, name};
}

/// The group and all that contain it. Within a container, the path may be the host's, of which
/// only the end is mounted: then the mount's top is the container's own group.
void apply_group(MemoryLimit* limit, const std::string& root, const GroupFiles& files,
                 std::string path) {
  while (true) {
    if (path == "/") path.clear();
    if (const auto left = left_in_group(root, files, path)) {
      apply(limit, *left, "the memory limit of control group " + (path.empty() ? "/" : path));
    }
    if (path.empty()) return;
    path.erase(path.rfind('/'));
  }
}

}  // namespace

MemoryLimit memory_limit(const std::string& root) {
  MemoryLimit limit{kUnlimited, "nothing"};
  const std::uint64_t available_kib = read_field(root + "/proc/meminfo", "MemAvailable:");
  if (available_kib > 0) apply(&limit, available_kib * 1024, "the machine's free memory");

  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {  // hierarchy:controllers:path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (path.empty() || path.front() != '/') continue;
    if (controllers == ",,") apply_group(&limit, root, kVersion2, path);
    if (controllers.find(",memory,") != std::string::npos) {
      apply_group(&limit, root, kVersion1, path);
    }
  }

  rlimit file_size{};
  if (getrlimit(RLIMIT_FSIZE, &file_size) == 0 && file_size.rlim_cur != RLIM_INFINITY) {
    apply(&limit, file_size.rlim_cur, "the limit on the size of files (ulimit -f)");
  }
  return limit;
}

}  // namespace allring
