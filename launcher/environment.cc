#include "launcher/environment.h"

#include <algorithm>
#include <array>

namespace allring {

namespace {

// A name that ends in * stands for every name that begins so.
constexpr auto kHostBound = std::to_array<std::string_view>({
    // Who is logged in, and where.
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "MAIL",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "HOSTNAME",
    "HOST",
    "SSH_*",
    "TTY",
    "GPG_TTY",
    // Sessions of a desktop, of a terminal multiplexer and of systemd.
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_*",
    "DBUS_*",
    "DESKTOP_SESSION",
    "SESSION_MANAGER",
    "WINDOWID",
    "STY",
    "TMUX",
    "TMUX_PANE",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "NOTIFY_SOCKET",
    "LISTEN_*",
    "MANAGERPID",
    "SYSTEMD_*",
    // Folders that may be private to the host or the login.
    "TMPDIR",
    "TMP",
    "TEMP",
    "TEMPDIR",
    // Devices are numbered by each host.
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
});

}  // namespace

Environment::Environment(const char* const* entries) {
  for (; *entries != nullptr; ++entries) {
    const std::string_view entry(*entries);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    set_default(std::string(entry.substr(0, equals)), std::string(entry.substr(equals + 1)));
  }
}

void Environment::set_entry(std::string_view entry) {
  const std::size_t equals = entry.find('=');
  set(std::string(entry.substr(0, equals)),
      equals == std::string_view::npos ? "" : std::string(entry.substr(equals + 1)));
}

std::optional<std::string> Environment::find(const std::string& name) const {
  auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string> Environment::entries() const {
  std::vector<std::string> result;
  result.reserve(values_.size());
  for (const auto& [name, value] : values_) result.push_back(name + "=" + value);
  return result;
}

std::vector<std::string> Environment::portable_entries() const {
  std::vector<std::string> result;
  for (const auto& [name, value] : values_) {
    if (!is_host_bound(name)) result.push_back(name + "=" + value);
  }
  return result;
}

bool is_host_bound(std::string_view name) {
  return std::any_of(kHostBound.begin(), kHostBound.end(), [name](std::string_view bound) {
    if (bound.back() != '*') return name == bound;
    return name.starts_with(bound.substr(0, bound.size() - 1));
  });
}

void add_rank_variables(const RankIdentity& identity, Environment* environment) {
  auto set = [environment](const char* name, int value) {
    environment->set(name, std::to_string(value));
  };
  for (const std::string prefix : {"ALLRING_", "HOROVOD_"}) {
    set((prefix + "RANK").c_str(), identity.rank);
    set((prefix + "SIZE").c_str(), identity.size);
    set((prefix + "LOCAL_RANK").c_str(), identity.local_rank);
    set((prefix + "LOCAL_SIZE").c_str(), identity.local_size);
    set((prefix + "CROSS_RANK").c_str(), identity.cross_rank);
    set((prefix + "CROSS_SIZE").c_str(), identity.cross_size);
    environment->set(prefix + "HOSTNAME", identity.host);
  }
  environment->set("ALLRING_JOB_ID", identity.job_id);
  environment->set("ALLRING_STORE", identity.store_address);
  environment->set("ALLRING_SECRET_FILE", identity.secret_file);
  set("ALLRING_SINGLE_HOST", identity.hosts == 1 ? 1 : 0);

  set("RANK", identity.rank);
  set("WORLD_SIZE", identity.size);
  set("LOCAL_RANK", identity.local_rank);
  set("LOCAL_WORLD_SIZE", identity.local_size);
  set("GROUP_RANK", identity.host_index);
  environment->set("MASTER_ADDR", identity.master_address);
  set("MASTER_PORT", identity.master_port);

  environment->set_default("PYTHONUNBUFFERED", "1");
  environment->set_default("OMP_NUM_THREADS",
                           std::to_string(std::max(1, identity.host_cores / identity.local_size)));
}

}  // namespace allring
