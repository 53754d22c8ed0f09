#include "collectives/transport/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>

#include "collectives/transport/memory_limit.h"

namespace allring {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugePageBytes = 2 << 20;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::string wanted(std::size_t bytes) {
  return "cannot reserve " + std::to_string(bytes) + " bytes of shared memory: ";
}

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Maps `fd` at an address of its own choice. The system puts mappings side by side, so those of
/// equal size, being powers of two, would lie at distances at which addresses share the hashed bits
/// by which some first-level caches guess the way (AMD's Zen: 256 MiB), which makes reading both at
/// once several times slower. Hence a gap that differs from mapping to mapping.
Result<std::span<std::byte>> map_apart(int fd, std::size_t bytes) {
  static constexpr std::size_t kGaps = 31;  // prime: equal sizes meet every gap
  static std::atomic<std::size_t> counter{0};
  const std::size_t unit = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  const std::size_t gap = (1 + counter.fetch_add(7, std::memory_order_relaxed) % kGaps) * unit;
  const std::size_t reserved = bytes + gap + unit;
  void* room =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return Status::from_errno(wanted(bytes) + "no address space", errno);
  auto* const begin = static_cast<std::byte*>(room);
  const auto address = reinterpret_cast<std::uintptr_t>(room);
  // The gap is above: the next mapping goes below this one.
  std::byte* const place = begin + (round_up(address, unit) - address);
  if (mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    const int error = errno;
    munmap(room, reserved);
    return Status::from_errno(wanted(bytes) + "cannot map it", error);
  }
  // What is left over is given back; mappings of this size do not fit into it.
  if (place > begin) munmap(begin, static_cast<std::size_t>(place - begin));
  std::byte* const end = place + bytes;
  munmap(end, static_cast<std::size_t>(begin + reserved - end));
  // Fewer page faults where the administrator allows huge pages for shared memory; else nothing.
  if (bytes >= kHugePageBytes) madvise(place, bytes, MADV_HUGEPAGE);
  return std::span<std::byte>(place, bytes);
}

/// Gives pages of a file memory. @return 0 or errno.
int allocate_file(int fd, std::uint64_t offset, std::uint64_t bytes) {
  int error = 0;
  do {
    error = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

}  // namespace

Result<std::shared_ptr<Segment>> Segment::create(std::size_t bytes) {
  const MemoryLimit limit = memory_limit();
  if (bytes > limit.free_bytes) {
    return Status::out_of_memory(wanted(bytes) + limit.name + " leaves " +
                                 std::to_string(limit.free_bytes));
  }
  return make(bytes, [](int fd, std::size_t size) { return allocate_file(fd, 0, size); });
}

Result<std::shared_ptr<Segment>> Segment::create_sparse(std::size_t bytes) {
  rlimit file_size{};
  if (getrlimit(RLIMIT_FSIZE, &file_size) == 0 && bytes > file_size.rlim_cur) {
    return Status::out_of_memory(wanted(bytes) + "the limit on the size of files (ulimit -f) is " +
                                 std::to_string(file_size.rlim_cur));
  }
  return make(bytes, [](int fd, std::size_t size) {
    return ftruncate(fd, static_cast<off_t>(size)) == 0 ? 0 : errno;
  });
}

Result<std::shared_ptr<Segment>> Segment::make(std::size_t bytes,
                                               int (*set_size)(int fd, std::size_t size)) {
  ALLRING_CHECK(bytes > 0, "a segment is not empty");
  bytes = round_up(bytes, kPageBytes);
  Fd fd(memfd_create("allring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd)
    return Status::from_errno(wanted(bytes) + "memfd_create", errno, StatusCode::kUnsupported);
  if (const int error = set_size(fd.get(), bytes); error != 0) {
    return Status::from_errno(wanted(bytes) + "cannot set its size", error,
                              StatusCode::kOutOfMemory);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return Status::from_errno(wanted(bytes) + "cannot seal it", errno, StatusCode::kUnsupported);
  }
  ALLRING_ASSIGN_OR_RETURN(const std::span<std::byte> memory, map_apart(fd.get(), bytes));
  return std::shared_ptr<Segment>(new Segment(std::move(fd), memory));
}

Status Segment::reserve(std::uint64_t offset, std::uint64_t bytes) {
  if (const int error = allocate_file(fd_.get(), offset, bytes); error != 0)
    return Status::from_errno(wanted(bytes) + "fallocate", error, StatusCode::kOutOfMemory);
  return {};
}

void Segment::release(std::uint64_t offset, std::uint64_t bytes) {
  // What cannot be given back stays ours.
  fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

Result<std::shared_ptr<Segment>> Segment::attach(Fd memory, std::size_t bytes) {
  struct stat about {};
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(memory.get(), &about) != 0 || bytes == 0 ||
      static_cast<std::uint64_t>(about.st_size) != bytes) {
    return Status::invalid_argument("what was passed is no sealed memory of " +
                                    std::to_string(bytes) + " bytes");
  }
  ALLRING_ASSIGN_OR_RETURN(const std::span<std::byte> mapped, map_apart(memory.get(), bytes));
  return std::shared_ptr<Segment>(new Segment(std::move(memory), mapped));
}

Segment::~Segment() { munmap(bytes_.data(), bytes_.size()); }

Status send_segment(int socket, const Segment& segment, Deadline deadline, Cancel cancel) {
  const std::uint64_t size = segment.bytes().size();
  return send_with_fd(socket, std::as_bytes(std::span(&size, 1)), segment.fd(), deadline, cancel);
}

Result<std::shared_ptr<Segment>> receive_segment(int socket, Deadline deadline, Cancel cancel) {
  std::uint64_t size = 0;
  ALLRING_ASSIGN_OR_RETURN(
      Fd memory,
      receive_with_fd(socket, std::as_writable_bytes(std::span(&size, 1)), deadline, cancel));
  return Segment::attach(std::move(memory), size);
}

}  // namespace allring
