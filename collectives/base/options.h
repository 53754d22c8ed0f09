#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "collectives/base/status.h"

namespace allring {

/// Every knob of the runtime, resolved. Fields carry the defaults; kOptionTable has the names.
struct Options {
  std::int64_t fusion_threshold_bytes = 4 << 20;
  std::int64_t fusion_tensor_bytes = 64 << 10;
  std::int64_t cache_capacity = 65536;
  std::int64_t lanes = 1;
  std::string algorithm;
  bool deterministic = false;
  std::string tuning_file;
  bool shared_memory = true;
  std::int64_t shared_memory_slot_bytes = 256 << 10;
  std::int64_t arena_bytes = std::int64_t{64} << 30;
  std::string wait = "auto";
  std::string simd = "auto";
  std::string network_interfaces;
  std::string mpi_library;
  double start_timeout_seconds = 30;
  double heartbeat_timeout_seconds = 60;
  double stall_warning_seconds = 60;
  double stall_shutdown_seconds = 600;
  bool stall_check_disable = false;
  std::string log_level = "warning";
  bool log_hide_time = false;

  /// Looks up a variable of the environment; nullopt when unset.
  using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

  /// Defaults overridden by ALLRING_<NAME>, else by the HOROVOD_ name of the same knob.
  /// @return kInvalidArgument naming the variable, its value and what is accepted.
  static Result<Options> from_environment(const Lookup& lookup);
  static Result<Options> from_environment();
};

/// One knob: the row from which parsing and docs/options.md are made.
struct OptionRow {
  std::string_view name;     ///< "FUSION_THRESHOLD": ALLRING_FUSION_THRESHOLD is the variable
  std::string_view horovod;  ///< "HOROVOD_FUSION_THRESHOLD", or empty
  std::variant<std::int64_t Options::*, double Options::*, bool Options::*, std::string Options::*>
      field;
  double minimum;  ///< for numbers, in the row's unit
  double maximum;
  std::string_view choices;  ///< for words: "auto|spin|yield|block"; empty: anything
  std::string_view sentence;
};

std::span<const OptionRow> option_table();

/// getenv.
std::optional<std::string> lookup_environment(const std::string& name);

}  // namespace allring
