#include "benchmarks/bench/limits_command.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benchmarks/bench/command_line.h"
#include "benchmarks/bench/pair.h"
#include "benchmarks/bench/probes.h"
#include "benchmarks/bench/report.h"

namespace allring::bench {

namespace {

constexpr std::size_t kSmall = 512 << 10;
constexpr std::size_t kMiddle = 16 << 20;
constexpr std::size_t kLarge = 64 << 20;

struct Limit {
  std::string name;
  std::size_t bytes;  ///< 0: has no size
  std::string unit;
  double value;
};

/// One line of the table: what is probed, at which sizes.
struct Probe {
  const char* name;
  const char* words;
  std::vector<std::size_t> sizes;
  const char* unit;
  Result<double> (*run)(Pair& pair, std::size_t bytes);
};

/// For probes without a size.
template <Result<double> (*Probed)(Pair&)>
Result<double> without_size(Pair& pair, std::size_t) {
  return Probed(pair);
}

std::vector<Probe> probes() {
  const std::vector<std::size_t> sizes = {kSmall, kMiddle, kLarge};
  return {
      {"memcpy", "memcpy, both processes together", sizes, "GB/s", copy_rate},
      {"add", "a += b (float32), both together", sizes, "GB/s", add_rate},
      {"read_peer", "reading what the other has written", sizes, "GB/s", read_rate},
      {"overwrite_peer", "overwriting what the other has written", sizes, "GB/s",
       overwrite_written_rate},
      {"overwrite_read", "overwriting what the other has read", sizes, "GB/s", overwrite_read_rate},
      {"line", "a cache line, one way", {0}, "ns", without_size<line_one_way_ns>},
      {"wake_up", "waking a sleeper (futex)", {0}, "us", without_size<wake_up_us>},
      {"tcp", "one TCP stream over loopback", {0}, "GB/s", without_size<tcp_rate>},
      {"tcp_8B", "8 bytes over TCP, sleeping, one way", {0}, "us", without_size<tcp_one_way_us>},
  };
}

std::string size_name(std::size_t bytes) {
  if (bytes == 0) return "";
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB"
                          : std::to_string(bytes >> 10) + " KiB";
}

Status measure(Pair& pair, std::vector<Limit>* limits) {
  const bool prints = pair.side() == 0;
  if (prints) {
    std::printf("# hvdbench limits: two processes, medians\n");
    std::printf("#%-42s %10s %10s\n", " what", "size", "limit");
  }
  for (const Probe& probe : probes()) {
    for (const std::size_t bytes : probe.sizes) {
      ALLRING_ASSIGN_OR_RETURN(const double value, probe.run(pair, bytes));
      limits->push_back({probe.name, bytes, probe.unit, value});
      if (!prints) continue;
      std::printf("  %-42s %10s %10.2f %s\n", probe.words, size_name(bytes).c_str(), value,
                  probe.unit);
      std::fflush(stdout);
    }
  }
  return {};
}

std::string to_json(const std::vector<Limit>& limits) {
  nlohmann::ordered_json document = {{"limits", nlohmann::ordered_json::array()}};
  for (const Limit& limit : limits)
    document["limits"].push_back({{"name", limit.name},
                                  {"bytes", limit.bytes},
                                  {"unit", limit.unit},
                                  {"value", limit.value}});
  return document.dump(1) + "\n";
}

}  // namespace

int run_limits(int argc, char** argv) {
  std::string json_file;
  CLI::App app("Measures what this host allows between two processes; starts the second itself");
  app.name("hvdbench limits");
  app.add_option("--json", json_file, "Writes the results to a file");
  if (const auto status = parse_command_line(app, argc, argv)) return *status;
  std::vector<Limit> limits;
  Status status = run_as_pair(kLarge, [&](Pair& pair) { return measure(pair, &limits); });
  if (status.ok() && !json_file.empty()) status = write_file(json_file, to_json(limits));
  return status.ok() ? 0 : exit_status(status);
}

}  // namespace allring::bench
