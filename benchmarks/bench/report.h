#pragma once

#include <span>
#include <string>
#include <vector>

#include "benchmarks/bench/runner.h"

namespace allring::bench {

/// How a peer's median time compares with ours in one line of the table: above 1 ours is faster.
struct Ratio {
  CollectiveKind collective = CollectiveKind::kAllreduce;
  std::size_t bytes = 0;
  std::string buffers;  ///< ours
  bool in_place = false;
  std::string against;
  double ratio = 0;
};

/// @param results each of ours followed by its peers'.
std::vector<Ratio> ratios(std::span<const Measurement> results);

/// What the whole table is about.
struct Setting {
  int size = 1;
  int hosts = 1;
  std::string peer;  ///< the peer's description, or empty
  double peer_memory_gbps =
      0;  ///< how fast memory that another rank has written is read; 0: unknown
  /// Of the machine's last minute, before this job began; negative: unknown. Whoever spins suffers
  /// most from other load, so a comparison under load is none.
  double load = -1;
};

/// Of the last minute, or negative.
double load_average();

/// The line about it in a table's head.
void print_load(const Setting& setting);

/// Prints the table's head and its rows as they come, as nccl-tests does, out of place and in
/// place side by side. Used by rank 0 only.
class Table {
 public:
  Table(const Arguments& arguments, Setting setting);
  void print_head() const;
  /// Each: ours and then, if there is one, the peer's. `in_place` is empty where the collective has
  /// no such form.
  void print_row(std::span<const Measurement> out_of_place,
                 std::span<const Measurement> in_place) const;

 private:
  void print_columns(std::span<const Measurement> measured) const;

  const Arguments& arguments_;
  Setting setting_;
};

/// {"np", "hosts", "results": [...], "ratios": [...]}; docs/hvdbench.md lists the fields.
std::string to_json(const Setting& setting, std::span<const Measurement> results);
std::string to_csv(const Setting& setting, std::span<const Measurement> results);

/// @return kInvalidArgument with the file and the reason when it cannot be written.
Status write_file(const std::string& file, const std::string& text);

}  // namespace allring::bench
