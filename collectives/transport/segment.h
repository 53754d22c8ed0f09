#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/transport/socket.h"

namespace allring {

/// Memory that processes of one host share: a memfd, mapped. It has no name in any file system, so
/// nothing is left when the last process that maps it ends, however it ends, and the size of
/// /dev/shm does not matter. Its pages are reserved when it is made (but see create_sparse()), and
/// its size is sealed, so touching it never raises SIGBUS. Thread-compatible.
class Segment {
 public:
  /// Zeroed memory. `bytes` is rounded up to a multiple of 4096. Mappings of one process lie at
  /// distances that are not large powers of two, which some processors' caches confuse.
  /// @return kOutOfMemory saying how much was wanted and what the limit is: free memory, the
  ///         control group's limit, RLIMIT_FSIZE, RLIMIT_AS or descriptors; kUnsupported where the
  ///         system has no memfd.
  static Result<std::shared_ptr<Segment>> create(std::size_t bytes);

  /// Address space whose pages hold no memory yet: reserve() comes before a page is touched.
  /// @return as create(), but for the memory itself.
  static Result<std::shared_ptr<Segment>> create_sparse(std::size_t bytes);

  /// Gives pages memory; those that have it keep it with its content. Multiples of 4096; on any
  /// process that maps it and has kept the descriptor. @return kOutOfMemory.
  Status reserve(std::uint64_t offset, std::uint64_t bytes);
  /// Takes it away again; read as zeros then, and not to be touched by any process.
  void release(std::uint64_t offset, std::uint64_t bytes);

  /// Maps what another process created. @return kInvalidArgument unless `memory` is a memfd of this
  /// size whose size is sealed.
  static Result<std::shared_ptr<Segment>> attach(Fd memory, std::size_t bytes);

  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }
  /// Closes the descriptor once nobody needs it any more; the mapping stays.
  void close_fd() { fd_.reset(); }

 private:
  /// @param set_size gives the file its size. @return 0 or errno.
  static Result<std::shared_ptr<Segment>> make(std::size_t bytes,
                                               int (*set_size)(int fd, std::size_t size));
  Segment(Fd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  Fd fd_;
  std::span<std::byte> bytes_;
};

/// Passes `segment` to the process at the other end of a unix socket, which calls
/// receive_segment().
Status send_segment(int socket, const Segment& segment, Deadline deadline, Cancel cancel = {});
Result<std::shared_ptr<Segment>> receive_segment(int socket, Deadline deadline, Cancel cancel = {});

}  // namespace allring
