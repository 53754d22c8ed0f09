#include "runtime/rendezvous/store_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace allring {

namespace {

// Answers that a client leaves unread beyond this stop the server from reading its requests.
constexpr std::size_t kUnreadBytes = 1 << 20;
// Read from one client before the others have their turn.
constexpr int kReadsPerTurn = 16;
constexpr std::size_t kReadBytes = 64 << 10;

Status closed() { return Status::peer_lost(-1, "the client has closed its connection"); }

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

StoreConnection::StoreConnection(Fd fd, const std::string& secret, TimePoint since)
    : fd_(std::move(fd)), since_(since) {
  handshake_.emplace(fd_.get(), secret, HelloCheck());
}

bool StoreConnection::crowded() const { return outgoing_bytes_ > kUnreadBytes; }

Status StoreConnection::advance(const std::function<Status(const StoreFrame&)>& take) {
  if (handshake_) ALLRING_RETURN_IF_ERROR(shake_hands());
  if (handshake_) return {};
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    ALLRING_RETURN_IF_ERROR(write());
    ALLRING_RETURN_IF_ERROR(take_requests(take));
    if (crowded()) break;
    ALLRING_ASSIGN_OR_RETURN(const bool more, read());
    if (!more) break;
  }
  // What the last turn read may have been all that there is: nothing would wake us for it again.
  ALLRING_RETURN_IF_ERROR(take_requests(take));
  return write();
}

void StoreConnection::answer(StoreFrameType type, std::uint32_t id, Value value) {
  Outgoing outgoing{encode_store_answer(type, id, value ? value->size() : 0), std::move(value)};
  outgoing_bytes_ += outgoing.bytes();
  outgoing_.push_back(std::move(outgoing));
}

std::uint32_t StoreConnection::wanted_events() const {
  std::uint32_t events = 0;
  if (handshake_ ? !handshake_writes_ : !crowded()) events |= EPOLLIN;
  if (handshake_ ? handshake_writes_ : !outgoing_.empty()) events |= EPOLLOUT;
  return events;
}

Status StoreConnection::shake_hands() {
  ALLRING_ASSIGN_OR_RETURN(const ServerHandshake::Progress progress, handshake_->advance());
  handshake_writes_ = progress == ServerHandshake::Progress::kWantWrite;
  if (progress == ServerHandshake::Progress::kDone) handshake_.reset();
  return {};
}

Status StoreConnection::write() {
  while (!outgoing_.empty()) {
    const Outgoing& front = outgoing_.front();
    std::array<iovec, 2> parts{};
    std::size_t count = 0;
    std::size_t skip = sent_;
    const auto add = [&](const std::string& bytes) {
      if (skip < bytes.size())
        parts[count++] = {const_cast<char*>(bytes.data()) + skip, bytes.size() - skip};
      skip -= std::min(skip, bytes.size());
    };
    add(front.head);
    if (front.value) add(*front.value);
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t moved = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved < 0) return would_block(errno) ? Status() : closed();
    sent_ += static_cast<std::size_t>(moved);
    if (sent_ < front.bytes()) continue;
    outgoing_bytes_ -= front.bytes();
    outgoing_.pop_front();
    sent_ = 0;
  }
  return {};
}

Status StoreConnection::take_requests(const std::function<Status(const StoreFrame&)>& take) {
  while (!crowded()) {
    ALLRING_ASSIGN_OR_RETURN(const auto body, reader_.next());
    if (!body) break;
    ALLRING_ASSIGN_OR_RETURN(const StoreFrame frame, StoreFrame::parse(*body));
    ALLRING_RETURN_IF_ERROR(take(frame));
  }
  return {};
}

Result<bool> StoreConnection::read() {
  std::array<char, kReadBytes> bytes;
  const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && would_block(errno)) return false;
  if (got <= 0) return closed();
  reader_.append({bytes.data(), static_cast<std::size_t>(got)});
  return true;
}

}  // namespace allring
