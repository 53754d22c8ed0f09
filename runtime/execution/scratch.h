#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "collectives/base/status.h"

namespace allring {

/// Working memory of one lane, aligned to 4096: the fusion buffer. Kept and only ever grown, so
/// that a training step does not fault fresh pages. Thread-compatible.
class Scratch {
 public:
  /// Undefined content, valid until the next call. @return kOutOfMemory saying how much was wanted.
  Result<std::span<std::byte>> get(std::size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

/// Memory for an output, aligned to 64, never null even for 0 bytes. @return kOutOfMemory.
Result<std::shared_ptr<std::byte[]>> allocate_output(std::size_t bytes);

}  // namespace allring
