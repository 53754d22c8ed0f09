#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "collectives/base/status.h"
#include "collectives/transport/arena.h"

namespace allring {

/// Working memory of one lane, aligned to 4096: the fusion buffer. In the arena if there is one and
/// it has room. Kept and only ever grown, so that a training step does not fault fresh pages.
/// Thread-compatible.
class Scratch {
 public:
  explicit Scratch(std::shared_ptr<Arena> arena = nullptr) : arena_(std::move(arena)) {}
  ~Scratch() { drop(); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Undefined content, valid until the next call. @return kOutOfMemory saying how much was wanted.
  Result<std::span<std::byte>> get(std::size_t bytes);

 private:
  void drop();

  std::shared_ptr<Arena> arena_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Memory for an output, aligned to 64, never null even for 0 bytes. @return kOutOfMemory.
Result<std::shared_ptr<std::byte[]>> allocate_output(std::size_t bytes);

}  // namespace allring
