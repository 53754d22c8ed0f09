#include "runtime/execution/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace allring {

namespace {

std::byte* allocate(std::size_t alignment, std::size_t bytes) {
  const std::size_t rounded = (std::max(bytes, std::size_t{1}) + alignment - 1) / alignment;
  return static_cast<std::byte*>(std::aligned_alloc(alignment, rounded * alignment));
}

Status lacking(std::size_t bytes) {
  return Status::out_of_memory("no memory for " + std::to_string(bytes) + " bytes");
}

}  // namespace

void Scratch::drop() {
  if (memory_ != nullptr && !(arena_ && arena_->free(memory_))) std::free(memory_);
  memory_ = nullptr;
  bytes_ = 0;
}

Result<std::span<std::byte>> Scratch::get(std::size_t bytes) {
  if (bytes > bytes_) {
    drop();
    if (arena_) {
      const Result<std::byte*> place = arena_->allocate(bytes);
      if (place.ok()) memory_ = *place;
    }
    if (memory_ == nullptr) memory_ = allocate(4096, bytes);
    if (memory_ == nullptr) return lacking(bytes);
    bytes_ = bytes;
  }
  return std::span<std::byte>(memory_, bytes);
}

Result<std::shared_ptr<std::byte[]>> allocate_output(std::size_t bytes) {
  std::byte* memory = allocate(64, bytes);
  if (memory == nullptr) return lacking(bytes);
  return std::shared_ptr<std::byte[]>(memory, [](std::byte* p) { std::free(p); });
}

}  // namespace allring
