#include "collectives/transport/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace allring {

namespace {

constexpr int kBacklog = 4096;  // the system lowers it to net.core.somaxconn

/// A socket address of any family, and how much of it counts.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

Result<Address> unix_address(std::string_view name) {
  Address address;
  auto* out = reinterpret_cast<sockaddr_un*>(&address.storage);
  // sun_path[0] stays zero: that makes the name abstract.
  if (name.empty() || name.size() > sizeof(out->sun_path) - 1) {
    return Status::invalid_argument("the name of an abstract unix socket has 1 to " +
                                    std::to_string(sizeof(out->sun_path) - 1) + " bytes, not " +
                                    std::to_string(name.size()) + ": @" + std::string(name));
  }
  out->sun_family = AF_UNIX;
  std::memcpy(out->sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<Address> ip_address(const TcpAddress& tcp) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, tcp.ip.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(tcp.port);
    address.length = sizeof(*v4);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET6, tcp.ip.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(tcp.port);
    address.length = sizeof(*v6);
    return address;
  }
  return Status::invalid_argument("'" + tcp.ip + "' is no numeric IPv4 or IPv6 address");
}

Result<Fd> make_socket(int family) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Status::from_errno("cannot make a socket", errno);
  return fd;
}

void send_at_once(int fd) {
  const int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

Result<Fd> listen_on(const Address& address, const std::string& name) {
  ALLRING_ASSIGN_OR_RETURN(Fd fd, make_socket(address.family()));
  if (address.family() == AF_INET6) {
    // The IPv4 addresses have listeners of their own.
    const int one = 1;
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
  }
  if (address.family() != AF_UNIX) {
    // A port that was asked for may still have closed connections of a former listener.
    const int one = 1;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  }
  if (bind(fd.get(), address.get(), address.length) != 0 || listen(fd.get(), kBacklog) != 0) {
    return Status::from_errno("cannot listen on " + name, errno, StatusCode::kInvalidArgument);
  }
  return fd;
}

/// With no listener at a local port of the ephemeral range, TCP may connect a socket to itself.
bool connected_to_itself(int fd) {
  Address local;
  Address remote;
  local.length = remote.length = sizeof(local.storage);
  if (getsockname(fd, local.get(), &local.length) != 0) return false;
  if (getpeername(fd, remote.get(), &remote.length) != 0) return false;
  return local.family() != AF_UNIX && local.length == remote.length &&
         std::memcmp(&local.storage, &remote.storage, local.length) == 0;
}

Result<Fd> connect_to(const Address& address, const std::string& name, Deadline deadline,
                      Cancel cancel) {
  ALLRING_ASSIGN_OR_RETURN(Fd fd, make_socket(address.family()));
  const std::string what = "cannot connect to " + name;
  for (milliseconds pause(1);; pause = std::min(pause * 2, milliseconds(50))) {
    if (connect(fd.get(), address.get(), address.length) == 0) break;
    if (errno == EINPROGRESS || errno == EINTR) {
      if (Status status = wait_ready(fd.get(), POLLOUT, deadline, cancel); !status.ok()) {
        return status.with_prefix(what + ": ");
      }
      int error = 0;
      socklen_t length = sizeof(error);
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) return Status::from_errno(what, error, StatusCode::kPeerLost);
      break;
    }
    // A unix listener whose queue is full; nothing tells when it has room again.
    if (errno != EAGAIN) return Status::from_errno(what, errno, StatusCode::kPeerLost);
    Status paused = wait_ready(-1, 0, std::min(deadline, deadline_after(pause)), cancel);
    if (paused.code() != StatusCode::kTimedOut) return paused.with_prefix(what + ": ");
    if (Clock::real().now() >= deadline) {
      return Status::timed_out(what + ": its queue of connections stayed full");
    }
  }
  if (connected_to_itself(fd.get())) {
    return Status::from_errno(what, ECONNREFUSED, StatusCode::kPeerLost);
  }
  return fd;
}

}  // namespace

void Fd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

std::string TcpAddress::to_string() const {
  const bool v6 = ip.find(':') != std::string::npos;
  return (v6 ? "[" + ip + "]" : ip) + ":" + std::to_string(port);
}

Result<Fd> listen_unix(std::string_view name) {
  ALLRING_ASSIGN_OR_RETURN(const Address address, unix_address(name));
  return listen_on(address, "@" + std::string(name));
}

Result<Fd> listen_tcp(const TcpAddress& tcp) {
  ALLRING_ASSIGN_OR_RETURN(const Address address, ip_address(tcp));
  return listen_on(address, tcp.to_string());
}

Result<std::uint16_t> local_port(int fd) {
  Address address;
  address.length = sizeof(address.storage);
  if (getsockname(fd, address.get(), &address.length) != 0) {
    return Status::from_errno("cannot read a socket's port", errno);
  }
  // Both families keep the port at the same place; the standard names it per family.
  if (address.family() == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
}

Result<Fd> accept_connection(int listener) {
  Fd fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) {
    if (!is_unix_socket(fd.get())) send_at_once(fd.get());
    return fd;
  }
  switch (errno) {
    // Nothing there, or the connection broke before we took it (accept(2), "Error handling").
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Fd();
    default:
      return Status::from_errno("cannot accept a connection", errno);
  }
}

Result<Fd> connect_unix(std::string_view name, Deadline deadline, Cancel cancel) {
  ALLRING_ASSIGN_OR_RETURN(const Address address, unix_address(name));
  return connect_to(address, "@" + std::string(name), deadline, cancel);
}

Result<Fd> connect_tcp(const TcpAddress& tcp, Deadline deadline, Cancel cancel) {
  ALLRING_ASSIGN_OR_RETURN(const Address address, ip_address(tcp));
  ALLRING_ASSIGN_OR_RETURN(Fd fd, connect_to(address, tcp.to_string(), deadline, cancel));
  send_at_once(fd.get());
  return fd;
}

Result<std::pair<Fd, Fd>> socket_pair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) {
    return Status::from_errno("cannot make a pair of sockets", errno);
  }
  return std::make_pair(Fd(fds[0]), Fd(fds[1]));
}

bool is_unix_socket(int fd) {
  int family = 0;
  socklen_t length = sizeof(family);
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && family == AF_UNIX;
}

Result<uid_t> peer_uid(int unix_socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (getsockopt(unix_socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return Status::from_errno("cannot tell whose process is at the other end of a socket", errno);
  }
  return credentials.uid;
}

}  // namespace allring
