#include "collectives/base/options.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace allring {

namespace {

constexpr double kHuge = 1e18;

const OptionRow kTable[] = {
    {"FUSION_THRESHOLD", "HOROVOD_FUSION_THRESHOLD", &Options::fusion_threshold_bytes, 0, kHuge, "",
     "bytes of one fused batch at most; 0 turns fusion off"},
    {"FUSION_TENSOR_BYTES", "", &Options::fusion_tensor_bytes, 0, kHuge, "",
     "tensors larger than this are never copied into a batch within a host"},
    {"CACHE_CAPACITY", "HOROVOD_CACHE_CAPACITY", &Options::cache_capacity, 0, 1 << 24, "",
     "tensors whose negotiation is remembered; 0 turns the response cache off"},
    {"LANES", "", &Options::lanes, 1, 16, "",
     "threads that move data at once, each with its own channel and shared memory"},
    {"ALGORITHM", "", &Options::algorithm, 0, 0, "",
     "forces algorithms by name: \"ring\" or \"allreduce=ring,allgather=ring\""},
    {"DETERMINISTIC", "", &Options::deterministic, 0, 0, "",
     "1 adds floats in the order of ranks: the same bits whatever the fusion, algorithm or timing"},
    {"TUNING_FILE", "", &Options::tuning_file, 0, 0, "",
     "what hvdbench tune has written: algorithms are chosen by this cluster's measured costs"},
    {"SHARED_MEMORY", "", &Options::shared_memory, 0, 0, "",
     "0 makes ranks of one host talk over sockets"},
    {"SHARED_MEMORY_SLOT_BYTES", "", &Options::shared_memory_slot_bytes, 4096, 64 << 20, "",
     "bytes of one shared-memory slot; three per rank and lane"},
    {"ARENA_BYTES", "", &Options::arena_bytes, 0, kHuge, "",
     "address space for buffers that the ranks of a host reduce in place, per rank, within an "
     "equal "
     "share of the machine's memory; 0 does without"},
    {"WAIT", "", &Options::wait, 0, 0, "auto|spin|yield|block",
     "how a lane waits for its peers on the same host"},
    {"SIMD", "", &Options::simd, 0, 0, "auto|scalar|avx2|avx512",
     "instruction set of the reduction kernels"},
    {"NETWORK_INTERFACES", "HOROVOD_GLOO_IFACE", &Options::network_interfaces, 0, 0, "",
     "interface names between hosts, comma separated; empty takes all but the loopback"},
    {"MPI_LIBRARY", "", &Options::mpi_library, 0, 0, "",
     "path of liballring_mpi.so, for mpirun on several hosts; empty: beside liballring.so"},
    {"START_TIMEOUT", "HOROVOD_START_TIMEOUT", &Options::start_timeout_seconds, 0.1, 1e6, "",
     "seconds in which all ranks must have met"},
    {"HEARTBEAT_TIMEOUT_SECONDS", "", &Options::heartbeat_timeout_seconds, 0, 1e6, "",
     "a rank silent for so long counts as lost; 0 never"},
    {"STALL_CHECK_TIME_SECONDS", "HOROVOD_STALL_CHECK_TIME_SECONDS",
     &Options::stall_warning_seconds, 0, 1e6, "",
     "a tensor that some rank has not submitted for so long is warned about"},
    {"STALL_SHUTDOWN_TIME_SECONDS", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
     &Options::stall_shutdown_seconds, 0, 1e6, "",
     "and after so long is an error on every rank; 0 never"},
    {"STALL_CHECK_DISABLE", "HOROVOD_STALL_CHECK_DISABLE", &Options::stall_check_disable, 0, 0, "",
     "1 turns both off"},
    {"LOG_LEVEL", "HOROVOD_LOG_LEVEL", &Options::log_level, 0, 0,
     "trace|debug|info|warning|error|fatal|off", "least severe lines that are printed"},
    {"LOG_HIDE_TIME", "HOROVOD_LOG_HIDE_TIME", &Options::log_hide_time, 0, 0, "",
     "1 prints lines without the time"},
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Status bad(const std::string& variable, const std::string& text, const std::string& expected) {
  return Status::invalid_argument(variable + "=\"" + text + "\": expected " + expected);
}

Result<double> parse_number(const OptionRow& row, const std::string& variable,
                            const std::string& text, bool whole) {
  errno = 0;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  std::ostringstream expected;
  expected << (whole ? "a whole number" : "a number") << " from " << row.minimum << " to "
           << row.maximum;
  if (text.empty() || *end != '\0' || errno != 0 || !std::isfinite(value) || value < row.minimum ||
      value > row.maximum || (whole && value != std::floor(value)))
    return bad(variable, text, expected.str());
  return value;
}

Status set_field(const OptionRow& row, const std::string& variable, const std::string& text,
                 Options* options) {
  if (auto* field = std::get_if<std::int64_t Options::*>(&row.field)) {
    ALLRING_ASSIGN_OR_RETURN(const double value, parse_number(row, variable, text, true));
    options->** field = static_cast<std::int64_t>(value);
  } else if (auto* field = std::get_if<double Options::*>(&row.field)) {
    ALLRING_ASSIGN_OR_RETURN(options->**field, parse_number(row, variable, text, false));
  } else if (auto* field = std::get_if<bool Options::*>(&row.field)) {
    const std::string word = lower(text);
    const bool on = word == "1" || word == "true" || word == "yes" || word == "on";
    const bool off =
        word == "0" || word == "false" || word == "no" || word == "off" || word.empty();
    if (!on && !off) return bad(variable, text, "0 or 1");
    options->** field = on;
  } else {
    auto member = std::get<std::string Options::*>(row.field);
    std::string word = row.choices.empty() ? text : lower(text);
    if (!row.choices.empty()) {
      // No '|' in the word: "spin|yield" is none of the choices.
      const std::string choices = "|" + std::string(row.choices) + "|";
      if (word.empty() || word.find('|') != std::string::npos ||
          choices.find("|" + word + "|") == std::string::npos)
        return bad(variable, text, "one of " + std::string(row.choices));
    }
    options->*member = std::move(word);
  }
  return {};
}

}  // namespace

std::span<const OptionRow> option_table() { return kTable; }

Result<Options> Options::from_environment(const Lookup& lookup) {
  Options options;
  for (const OptionRow& row : kTable) {
    std::string variable = "ALLRING_" + std::string(row.name);
    std::optional<std::string> text = lookup(variable);
    if (!text && !row.horovod.empty()) {
      variable = row.horovod;
      text = lookup(variable);
    }
    if (text) ALLRING_RETURN_IF_ERROR(set_field(row, variable, *text, &options));
  }
  return options;
}

Result<Options> Options::from_environment() { return from_environment(lookup_environment); }

std::optional<std::string> lookup_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace allring
