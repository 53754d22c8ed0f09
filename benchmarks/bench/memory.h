#pragma once

#include <cstddef>
#include <functional>

namespace allring::bench {

/// Memory to measure with, zeroed and so touched.
class Memory {
 public:
  /// Plain private memory, page aligned.
  explicit Memory(std::size_t bytes);
  /// Memory of another kind, and how to give it back.
  Memory(std::byte* data, std::size_t bytes, std::function<void(std::byte*)> release);
  Memory(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  std::byte* data() { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
  std::function<void(std::byte*)> release_;
};

/// Writes every cache line of `memory` without changing it, as a backward pass would write
/// gradients.
void rewrite(std::byte* memory, std::size_t bytes);

}  // namespace allring::bench
