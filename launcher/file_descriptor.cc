#include "launcher/file_descriptor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace allring {

void FileDescriptor::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::from_errno("pipe", errno);
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

Result<std::pair<FileDescriptor, FileDescriptor>> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Status::from_errno("socketpair", errno);
  return std::pair(FileDescriptor(ends[0]), FileDescriptor(ends[1]));
}

Result<FileDescriptor> open_null() {
  FileDescriptor fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!fd) return Status::from_errno("/dev/null", errno);
  return fd;
}

void set_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      ::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      const bool lost = errno == EPIPE || errno == ECONNRESET;
      return Status::from_errno("write", errno,
                                lost ? StatusCode::kPeerLost : StatusCode::kInternal);
    }
  }
  return {};
}

void fill_standard_descriptors() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::dup(fd)) {
    if (fd > 2) {
      ::close(fd);
      break;
    }
  }
}

}  // namespace allring
