#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace allring {

/// Environment variables: names with values, both bytes. Thread-compatible.
class Environment {
 public:
  Environment() = default;
  /// @param entries NULL-terminated NAME=value strings, as `environ`; entries without = are left
  ///        out, and the first of a name counts, as for getenv.
  explicit Environment(const char* const* entries);

  void set(std::string name, std::string value) { values_[std::move(name)] = std::move(value); }
  /// Sets it unless it is there.
  void set_default(std::string name, std::string value) {
    values_.emplace(std::move(name), std::move(value));
  }
  /// Sets from NAME=value.
  void set_entry(std::string_view entry);
  std::optional<std::string> find(const std::string& name) const;

  /// NAME=value, ordered by name.
  std::vector<std::string> entries() const;
  /// The same without what is_host_bound().
  std::vector<std::string> portable_entries() const;

 private:
  std::map<std::string, std::string> values_;
};

/// Whether a variable speaks of the host or the login it was set on, and is therefore not taken to
/// other hosts (-x takes it there all the same).
bool is_host_bound(std::string_view name);

/// Everything a rank is told about itself by its environment.
struct RankIdentity {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
  int host_index = 0;
  int hosts = 1;
  std::string host;            ///< as the user wrote it
  std::string job_id;          ///< [a-z0-9-]+
  std::string store_address;   ///< unix:@...
  std::string secret_file;     ///< path
  std::string master_address;  ///< for torch: where rank 0 is
  int master_port = 0;
  int host_cores = 1;  ///< that the host's ranks may use together
};

/// Sets the variables of hvdrun (ALLRING_*), Horovod and torchrun. PYTHONUNBUFFERED and
/// OMP_NUM_THREADS, the rank's share of the cores, are set only where they are not yet.
void add_rank_variables(const RankIdentity& identity, Environment* environment);

}  // namespace allring
