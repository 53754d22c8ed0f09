#include "benchmarks/bench/memory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace allring::bench {

namespace {

constexpr std::align_val_t kPage{4096};
constexpr std::size_t kLeastBytes = 64;

}  // namespace

Memory::Memory(std::size_t bytes)
    : Memory(static_cast<std::byte*>(::operator new(std::max(bytes, kLeastBytes), kPage)),
             std::max(bytes, kLeastBytes),
             [](std::byte* data) { ::operator delete(data, kPage); }) {}

Memory::Memory(std::byte* data, std::size_t bytes, std::function<void(std::byte*)> release)
    : bytes_(bytes), data_(data), release_(std::move(release)) {
  std::memset(data_, 0, bytes_);
}

Memory::Memory(Memory&& other) noexcept
    : bytes_(other.bytes_),
      data_(std::exchange(other.data_, nullptr)),
      release_(std::move(other.release_)) {}

Memory::~Memory() {
  if (data_ != nullptr) release_(data_);
}

void rewrite(std::byte* memory, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) {
    auto* line = const_cast<volatile std::byte*>(memory + i);
    *line = *line;
  }
}

}  // namespace allring::bench
