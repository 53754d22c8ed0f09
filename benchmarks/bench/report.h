#pragma once

#include <string>
#include <vector>

#include "benchmarks/bench/runner.h"

namespace allring::bench {

/// Prints the table's head and its rows as they come, as nccl-tests does, out of place and in
/// place side by side. Used by rank 0 only.
class Table {
 public:
  Table(const Arguments& arguments, int size, int hosts);
  void print_head() const;
  /// `in_place` may be null where the collective has no such form.
  void print_row(const Measurement& out_of_place, const Measurement* in_place) const;

 private:
  const Arguments& arguments_;
  int size_;
  int hosts_;
};

/// {"np", "hosts", "results": [...]}; docs/hvdbench.md lists the fields.
/// @return kInvalidArgument with the file and the reason when it cannot be written.
Status write_json(const std::string& file, int size, int hosts,
                  const std::vector<Measurement>& results);
Status write_csv(const std::string& file, int size, const std::vector<Measurement>& results);

}  // namespace allring::bench
