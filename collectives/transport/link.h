#pragma once

#include <cstddef>
#include <span>

#include "collectives/base/status.h"

namespace allring {

/// A stream of bytes between two processes. Nothing here blocks; whoever owns the link decides
/// how to wait. Thread-compatible.
class Link {
 public:
  using Source = std::span<const std::byte>;
  using Sink = std::span<std::byte>;

  virtual ~Link() = default;

  /// Moves bytes off the front of the concatenated `parts` (at most 4). @return how many; 0: none
  /// at the moment; kPeerLost without a rank if the other process is gone.
  virtual Result<std::size_t> try_write(std::span<const Source> parts) = 0;
  /// Fills the concatenated `parts` (at most 4) from the front. @return as try_write().
  virtual Result<std::size_t> try_read(std::span<const Sink> parts) = 0;

  /// To be polled before sleeping: together with prepare_sleep(), it becomes ready whenever
  /// trying again is worthwhile.
  virtual int fd() const = 0;
  /// The poll() events to sleep for. Called when try_read and/or try_write (as told) had nothing to
  /// move. @return 0 if there is something to move by now: do not sleep.
  virtual short prepare_sleep(bool reading, bool writing) = 0;
  /// After every prepare_sleep(), when awake again.
  virtual void finish_sleep() = 0;

  /// A try costs no system call, so it may be repeated at will.
  virtual bool cheap() const = 0;
};

}  // namespace allring
