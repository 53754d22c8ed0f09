#pragma once

#include <cstddef>

#include "benchmarks/bench/pair.h"

namespace allring::bench {

// What the machine allows. Both processes of a pair call each of these; both get the same result,
// the median of some repetitions. Rates are GB/s.

/// memcpy from private to private memory, both at once: bytes copied by both together.
Result<double> copy_rate(Pair& pair, std::size_t bytes);
/// a += b of float32 in private memory, by our kernel, both at once: bytes of a of both together.
Result<double> add_rate(Pair& pair, std::size_t bytes);
/// The way of a cache line from one to the other, in ns.
Result<double> line_one_way_ns(Pair& pair);
/// Reading memory that the other has just written, a word of each line. REQUIRES: bytes <=
/// pair.bytes(), as below.
Result<double> read_rate(Pair& pair, std::size_t bytes);
/// Overwriting memory that the other has just written.
Result<double> overwrite_written_rate(Pair& pair, std::size_t bytes);
/// Overwriting one's own memory that the other has just read.
Result<double> overwrite_read_rate(Pair& pair, std::size_t bytes);
/// From waking a process that sleeps on a futex to its running, in µs.
Result<double> wake_up_us(Pair& pair);
/// One TCP stream over loopback.
Result<double> tcp_rate(Pair& pair);
/// There and back of 8 bytes over TCP on loopback, both sleeping in between: one way in µs.
Result<double> tcp_one_way_us(Pair& pair);

/// read_rate() of 512 KiB between ranks 0 and 1 of a job, known to rank 0 only; 0 if they share no
/// host. Collective.
Result<double> peer_memory_gbps(Contestant& ranks);

}  // namespace allring::bench
