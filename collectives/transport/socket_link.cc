#include "collectives/transport/socket_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

namespace allring {

namespace {

/// What the kernel holds on the way between two processes of a host: enough for the two to work
/// at once. TCP sizes its own buffers by the path's round trip, better than we could.
constexpr int kUnixBufferBytes = 1 << 20;

template <typename Part>
msghdr make_message(std::span<const Part> parts, iovec* vectors) {
  msghdr message{};
  message.msg_iov = vectors;
  for (const Part& part : parts) {
    if (part.empty()) continue;
    vectors[message.msg_iovlen++] = {const_cast<std::byte*>(part.data()), part.size()};
  }
  return message;
}

Result<std::size_t> outcome(ssize_t moved, const char* what) {
  if (moved >= 0) return static_cast<std::size_t>(moved);
  if (errno == EAGAIN || errno == EINTR) return std::size_t{0};
  // Without memory for a moment; trying again is the remedy.
  if (errno == ENOBUFS || errno == ENOMEM) return std::size_t{0};
  return Status::from_errno(what, errno, StatusCode::kPeerLost);
}

}  // namespace

SocketLink::SocketLink(Fd socket) : socket_(std::move(socket)) {
  if (!is_unix_socket(socket_.get())) return;
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &kUnixBufferBytes, sizeof(kUnixBufferBytes));
}

Result<std::size_t> SocketLink::try_write(std::span<const Source> parts) {
  iovec vectors[kMaxParts];
  const msghdr message = make_message(parts, vectors);
  return outcome(sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT),
                 "the connection broke while writing");
}

Result<std::size_t> SocketLink::try_read(std::span<const Sink> parts) {
  iovec vectors[kMaxParts];
  msghdr message = make_message(parts, vectors);
  const ssize_t moved = recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  if (moved == 0) return Status(StatusCode::kPeerLost, "the connection was closed");
  return outcome(moved, "the connection broke while reading");
}

short SocketLink::prepare_sleep(bool reading, bool writing) {
  return static_cast<short>((reading ? POLLIN : 0) | (writing ? POLLOUT : 0));
}

}  // namespace allring
