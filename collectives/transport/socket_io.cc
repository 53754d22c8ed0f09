// What is done with sockets once they are there: waiting, whole reads and writes, passed
// descriptors.

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collectives/transport/socket.h"

namespace allring {

namespace {

constexpr std::size_t kMaxPassedBytes = 4096;

/// Until `deadline`, or null for ever.
timespec* poll_timeout(Deadline deadline, timespec* storage) {
  if (deadline == kNoDeadline) return nullptr;
  const nanoseconds left = std::max(deadline - Clock::real().now(), nanoseconds(0));
  storage->tv_sec = left.count() / 1'000'000'000;
  storage->tv_nsec = left.count() % 1'000'000'000;
  return storage;
}

Status closed() { return {StatusCode::kPeerLost, "the other side closed the connection"}; }

Status broken(const char* what, int error) {
  return Status::from_errno(what, error, StatusCode::kPeerLost);
}

}  // namespace

Status wait_any(std::span<pollfd> fds, Deadline deadline) {
  while (true) {
    timespec storage;
    const int ready = ppoll(fds.data(), fds.size(), poll_timeout(deadline, &storage), nullptr);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Status::from_errno("poll", errno);
    if (Clock::real().now() >= deadline) return Status::timed_out("no answer in time");
  }
}

Status wait_ready(int fd, short events, Deadline deadline, Cancel cancel) {
  pollfd fds[3] = {{fd, events, 0}, {cancel.fds[0], POLLIN, 0}, {cancel.fds[1], POLLIN, 0}};
  ALLRING_RETURN_IF_ERROR(wait_any(fds, deadline));
  if ((fds[1].revents | fds[2].revents) != 0) return Status::aborted("given up while waiting");
  return {};
}

Status read_full(int fd, std::span<std::byte> bytes, Deadline deadline, Cancel cancel) {
  while (!bytes.empty()) {
    const ssize_t moved = recv(fd, bytes.data(), bytes.size(), 0);
    if (moved > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(moved));
    } else if (moved == 0) {
      return closed();
    } else if (errno == EAGAIN) {
      ALLRING_RETURN_IF_ERROR(wait_ready(fd, POLLIN, deadline, cancel));
    } else if (errno != EINTR) {
      return broken("cannot read from a connection", errno);
    }
  }
  return {};
}

Status write_full(int fd, std::span<const std::byte> bytes, Deadline deadline, Cancel cancel) {
  while (!bytes.empty()) {
    const ssize_t moved = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (moved >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(moved));
    } else if (errno == EAGAIN) {
      ALLRING_RETURN_IF_ERROR(wait_ready(fd, POLLOUT, deadline, cancel));
    } else if (errno != EINTR) {
      return broken("cannot write to a connection", errno);
    }
  }
  return {};
}

Status send_with_fd(int socket, std::span<const std::byte> bytes, int fd, Deadline deadline,
                    Cancel cancel) {
  ALLRING_CHECK(!bytes.empty() && bytes.size() <= kMaxPassedBytes, "a descriptor needs a message");
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  while (true) {
    const ssize_t moved = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (moved > 0) {
      // The descriptor travelled with the first byte.
      return write_full(socket, bytes.subspan(static_cast<std::size_t>(moved)), deadline, cancel);
    }
    if (errno == EAGAIN) {
      ALLRING_RETURN_IF_ERROR(wait_ready(socket, POLLOUT, deadline, cancel));
    } else if (errno != EINTR) {
      return broken("cannot pass a descriptor", errno);
    }
  }
}

Result<Fd> receive_with_fd(int socket, std::span<std::byte> bytes, Deadline deadline,
                           Cancel cancel) {
  Fd passed;
  while (!bytes.empty()) {
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t moved = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (moved == 0) return closed();
    if (moved < 0) {
      if (errno == EAGAIN) {
        ALLRING_RETURN_IF_ERROR(wait_ready(socket, POLLIN, deadline, cancel));
      } else if (errno != EINTR) {
        return broken("cannot receive a descriptor", errno);
      }
      continue;
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof(int));  // there is room for one only
      passed.reset(fd);
    }
    // A descriptor is dropped like this when the process has no free one.
    if ((message.msg_flags & MSG_CTRUNC) != 0 && !passed) {
      return Status::out_of_memory(
          "cannot receive a descriptor: this process has no more; raise ulimit -n");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(moved));
  }
  return passed;
}

Result<Fd> make_event() {
  Fd fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!fd) return Status::from_errno("cannot make an eventfd", errno);
  return fd;
}

void signal_event(int event_fd) noexcept {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then it is signalled.
  [[maybe_unused]] const ssize_t moved = write(event_fd, &one, sizeof(one));
}

void drain_event(int event_fd) noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t moved = read(event_fd, &count, sizeof(count));
}

}  // namespace allring
