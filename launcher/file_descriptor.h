#pragma once

#include <string_view>
#include <utility>

#include "collectives/base/status.h"

namespace allring {

/// A file descriptor and the duty to close it. Thread-compatible.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// All descriptors made here are close-on-exec and, unless a function says otherwise, blocking.

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};
Result<Pipe> make_pipe();

/// A connected pair of unix stream sockets.
Result<std::pair<FileDescriptor, FileDescriptor>> make_socket_pair();

/// /dev/null, for reading and writing.
Result<FileDescriptor> open_null();

void set_nonblocking(int fd);

/// Blocks until all bytes are written, whether or not fd is non-blocking. SIGPIPE must be ignored.
/// @return kPeerLost if nobody reads any more, else kInternal, both with errno's words.
Status write_all(int fd, std::string_view bytes);

/// Opens /dev/null in place of each of descriptors 0, 1 and 2 that is closed, so that none of ours
/// takes their numbers. To be called before anything is opened.
void fill_standard_descriptors();

}  // namespace allring
