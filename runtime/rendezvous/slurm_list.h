#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace allring {

/// Slurm's lists of hosts: "n[01-04,7],x1" is n01 n02 n03 n04 n7 x1; several brackets in one name
/// multiply, the last one fastest. nullopt if it is malformed or has more than 2^20 hosts.
std::optional<std::vector<std::string>> expand_slurm_hosts(std::string_view list);

/// Slurm's lists of tasks per host: "2(x3),1" is 2 2 2 1. nullopt as above.
std::optional<std::vector<int>> expand_slurm_tasks(std::string_view list);

}  // namespace allring
