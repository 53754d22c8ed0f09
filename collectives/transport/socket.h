#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"

namespace allring {

/// A file descriptor and the duty to close it. Thread-compatible.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

/// A numeric IPv4 or IPv6 address with a port.
struct TcpAddress {
  std::string ip;
  std::uint16_t port = 0;
  /// "10.0.0.1:4711" or "[fd00::1]:4711".
  std::string to_string() const;
};

/// Descriptors (eventfds) that end a wait with kAborted once one of them is readable; -1: none.
struct Cancel {
  Cancel(int fd = -1, int other_fd = -1) : fds{fd, other_fd} {}  // NOLINT: an fd is one
  int fds[2];
};

// Every socket made here is non-blocking and close-on-exec, no write raises SIGPIPE, and TCP
// connections send small messages at once (TCP_NODELAY). All functions are thread-safe.

/// Listens on the abstract unix socket `name` (without the leading zero byte).
/// @return kInvalidArgument for an empty or too long name or one that is taken.
Result<Fd> listen_unix(std::string_view name);
/// Listens on one address; port 0 lets the system choose: see local_port().
Result<Fd> listen_tcp(const TcpAddress& address);
/// The port that a TCP socket is bound to.
Result<std::uint16_t> local_port(int fd);
/// The next waiting connection, or an empty Fd if there is none at the moment.
Result<Fd> accept_connection(int listener);

/// Blocks until connected. @return kPeerLost with errno's text, kTimedOut, or kAborted.
Result<Fd> connect_unix(std::string_view name, Deadline deadline, Cancel cancel = {});
Result<Fd> connect_tcp(const TcpAddress& address, Deadline deadline, Cancel cancel = {});
/// A connected pair of stream sockets.
Result<std::pair<Fd, Fd>> socket_pair();

/// Blocks until all bytes have moved. @return kPeerLost when the other side has closed or reset the
/// connection, kTimedOut, or kAborted.
Status read_full(int fd, std::span<std::byte> bytes, Deadline deadline, Cancel cancel = {});
Status write_full(int fd, std::span<const std::byte> bytes, Deadline deadline, Cancel cancel = {});

/// One message of `bytes` (1 .. 4096) together with a descriptor, over a unix socket.
Status send_with_fd(int socket, std::span<const std::byte> bytes, int fd, Deadline deadline,
                    Cancel cancel = {});
/// Fills `bytes`; the Fd is empty if the sender attached none.
Result<Fd> receive_with_fd(int socket, std::span<std::byte> bytes, Deadline deadline,
                           Cancel cancel = {});

/// Blocks until poll() reports one of `events` (or an error or hang-up) on fd.
Status wait_ready(int fd, short events, Deadline deadline, Cancel cancel = {});

/// poll(): blocks until one of `fds` is ready, and tells which in their revents. @return kTimedOut.
Status wait_any(std::span<pollfd> fds, Deadline deadline);

bool is_unix_socket(int fd);
/// User of the process at the other end of a unix socket (SO_PEERCRED).
Result<uid_t> peer_uid(int unix_socket);

/// A non-blocking eventfd, for waking a thread that polls.
Result<Fd> make_event();
void signal_event(int event_fd) noexcept;
/// Makes a signalled event unsignalled.
void drain_event(int event_fd) noexcept;

}  // namespace allring
