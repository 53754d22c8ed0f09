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
  static constexpr std::size_t kMaxParts = 4;

  virtual ~Link() = default;

  /// Moves bytes off the front of the concatenated `parts` (at most kMaxParts, not all empty).
  /// @return how many; 0: none at the moment; kPeerLost without a rank if the other process has
  ///         closed its end.
  virtual Result<std::size_t> try_write(std::span<const Source> parts) = 0;
  /// Fills the concatenated `parts` from the front. @return as try_write().
  virtual Result<std::size_t> try_read(std::span<const Sink> parts) = 0;

  /// Trying costs no system call, so it may be repeated at will.
  virtual bool cheap() const = 0;

  /// Going to sleep: when a try had nothing to move, prepare_sleep() tells for which events to
  /// poll() fd(); it is 0 if there is something to move by now. Every prepare_sleep() is followed
  /// by finish_sleep() before the next try.
  virtual int fd() const = 0;
  virtual short prepare_sleep(bool reading, bool writing) = 0;
  virtual void finish_sleep() = 0;
};

}  // namespace allring
