#pragma once

#include <string>
#include <string_view>

#include "collectives/base/status.h"

namespace allring {

/// What moving and adding bytes costs on a cluster: what the rows' estimates are made of. The
/// defaults are of a machine with two cores and of 10 Gbit/s Ethernet; `hvdbench tune` measures
/// others. Equal on all ranks, as the choice of rows must be.
struct CostParameters {
  /// A message through a Transport.
  struct Messages {
    double alpha_us;     ///< from post_send here to the end of wait there, no payload
    double overhead_us;  ///< per further message that is under way at the same time
    double us_per_byte;  ///< for what leaves one rank; between hosts, one host
    bool operator==(const Messages&) const = default;
  };
  /// HostMemory.
  struct Memory {
    double line_us;      ///< one rank sees what another wrote into a line
    double flag_us;      ///< the same with a flag: two lines
    double us_per_byte;  ///< one rank reads what another wrote, and adds it to its own
    bool operator==(const Memory&) const = default;
  };

  // A line travels between cores in 150 ns. Two ranks on Zen 4, fresh data: push 44 us for 1 MiB,
  // 3.6 us for 64 KiB, 0.6 us for 1 KiB; oneshot 4.1, 0.35.
  Memory host_memory{.line_us = 0.15, .flag_us = 0.3, .us_per_byte = 1 / 22e3};
  // Unix sockets and rings in shared memory, between threads that wait by yielding.
  Messages within_host{.alpha_us = 6, .overhead_us = 1.5, .us_per_byte = 1 / 4e3};
  // TCP.
  Messages between_hosts{.alpha_us = 30, .overhead_us = 4, .us_per_byte = 1 / 1.2e3};
  double reduce_us_per_byte = 1 / 20e3;  ///< adding what has been received, per byte of it

  bool operator==(const CostParameters&) const = default;

  /// A line "name value" for each, in a fixed order: what parse() reads.
  std::string to_text() const;
  /// Lines "name value"; what is not named keeps its default; "#" begins a comment.
  /// @return kInvalidArgument naming the line for an unknown name, a name that comes twice, or
  ///         anything but a positive number.
  static Result<CostParameters> parse(std::string_view text);
  /// parse() of a file; the defaults for an empty path. @return kInvalidArgument naming the file.
  static Result<CostParameters> load(const std::string& path);
};

}  // namespace allring
