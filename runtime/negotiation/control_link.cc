#include "runtime/negotiation/control_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "collectives/kernels/crc32c.h"

namespace allring {

namespace {

constexpr std::size_t kWordBytes = 4;
constexpr std::size_t kHeaderBytes = 2 * kWordBytes;  // length, its checksum
constexpr std::uint32_t kSignOfLife = 0xffffffff;
constexpr std::uint32_t kMoreFollows = 0x80000000;
constexpr std::size_t kReadBytes = 64 << 10;
// Read from one peer before the others have their turn.
constexpr int kReadsPerTurn = 16;
constexpr int kProbes = 3;

void append_word(std::vector<std::byte>* bytes, std::uint32_t word) {
  for (int i = 0; i < 4; ++i) bytes->push_back(static_cast<std::byte>(word >> (8 * i)));
}

std::uint32_t word_at(const std::byte* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return word;
}

std::vector<std::byte> header(std::uint32_t length) {
  std::vector<std::byte> bytes;
  append_word(&bytes, length);
  append_word(&bytes, crc32c(0, bytes.data(), kWordBytes));
  return bytes;
}

std::vector<std::byte> part(std::span<const std::byte> content, bool more_follows) {
  std::vector<std::byte> bytes =
      header(static_cast<std::uint32_t>(content.size()) | (more_follows ? kMoreFollows : 0));
  bytes.reserve(kHeaderBytes + content.size() + kWordBytes);
  bytes.insert(bytes.end(), content.begin(), content.end());
  append_word(&bytes, crc32c(0, content.data(), content.size()));
  return bytes;
}

// Of the process at the other end of a unix socket: empty if it has no number here (it is in
// another container), or on kernels before 5.3.
Fd open_process(int fd) {
  ucred credentials{};
  socklen_t bytes = sizeof(credentials);
  if (!is_unix_socket(fd) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0 ||
      credentials.pid <= 0)
    return Fd();
  // Close-on-exec by itself.
  return Fd(static_cast<int>(syscall(SYS_pidfd_open, credentials.pid, 0)));
}

void set_option(int fd, int level, int option, int value) {
  // Without it the loss is noticed later, by the heartbeat.
  (void)setsockopt(fd, level, option, &value, sizeof(value));
}

}  // namespace

ControlLink::ControlLink(Rank peer, Rank world_rank, std::string name, std::string own_name, Fd fd,
                         TimePoint now)
    : peer_(peer),
      world_rank_(world_rank),
      name_(std::move(name)),
      own_name_(std::move(own_name)),
      fd_(std::move(fd)),
      process_(open_process(fd_.get())),
      last_heard_(now) {}

void ControlLink::close() {
  if (fd_) shutdown(fd_.get(), SHUT_RDWR);
  fd_.reset();
  process_.reset();
}

void ControlLink::watch_network(nanoseconds silence) {
  if (is_unix_socket(fd_.get())) return;
  const auto most = std::chrono::duration_cast<milliseconds>(
      std::min<nanoseconds>(silence, std::chrono::hours(24)));
  const int probe_seconds = std::max(1, static_cast<int>(most.count() / 1000 / (kProbes + 1)));
  set_option(fd_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(most.count()));
  set_option(fd_.get(), IPPROTO_TCP, TCP_KEEPIDLE, probe_seconds);
  set_option(fd_.get(), IPPROTO_TCP, TCP_KEEPINTVL, probe_seconds);
  set_option(fd_.get(), IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set_option(fd_.get(), SOL_SOCKET, SO_KEEPALIVE, 1);
}

Status ControlLink::lost_because(const std::string& what) const {
  return Status::peer_lost(world_rank_, name_ + " " + what);
}

void ControlLink::queue(std::span<const std::byte> bytes) {
  while (bytes.size() > kControlPartBytes) {
    outgoing_.push_back(part(bytes.first(kControlPartBytes), true));
    bytes = bytes.subspan(kControlPartBytes);
  }
  outgoing_.push_back(part(bytes, false));
  spoken_ = true;
}

void ControlLink::queue_sign_of_life() { outgoing_.push_back(header(kSignOfLife)); }

void ControlLink::write() {
  while (!outgoing_.empty() && fd_) {
    const std::vector<std::byte>& front = outgoing_.front();
    const ssize_t moved =
        ::send(fd_.get(), front.data() + sent_, front.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (moved < 0) {
      outgoing_.clear();
      sent_ = 0;
      return;
    }
    sent_ += static_cast<std::size_t>(moved);
    if (sent_ < front.size()) continue;
    outgoing_.pop_front();
    sent_ = 0;
  }
}

Status ControlLink::read(TimePoint now, std::vector<std::vector<std::byte>>* messages) {
  std::array<std::byte, kReadBytes> bytes;
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) return read_failure(got == 0 ? 0 : errno);
    last_heard_ = now;
    incoming_.insert(incoming_.end(), bytes.begin(), bytes.begin() + got);
    ALLRING_RETURN_IF_ERROR(take_messages(messages));
    if (static_cast<std::size_t>(got) < bytes.size()) break;
  }
  return {};
}

Status ControlLink::take_messages(std::vector<std::vector<std::byte>>* messages) {
  std::size_t at = 0;
  while (incoming_.size() - at >= kHeaderBytes) {
    const std::byte* const begin = incoming_.data() + at;
    const std::uint32_t word = word_at(begin);
    // Before it is believed: a wrong length would be waited for in vain.
    if (word_at(begin + kWordBytes) != crc32c(0, begin, kWordBytes)) return arrived_changed();
    if (word == kSignOfLife) {
      at += kHeaderBytes;
      continue;
    }
    const std::size_t length = word & ~kMoreFollows;
    if (length > kControlPartBytes)
      return lost_because("announced " + std::to_string(length) +
                          " bytes at once: another version of Allring");
    if (incoming_.size() - at - kHeaderBytes < length + kWordBytes) break;
    const std::byte* const content = begin + kHeaderBytes;
    if (word_at(content + length) != crc32c(0, content, length)) return arrived_changed();
    earlier_parts_.insert(earlier_parts_.end(), content, content + length);
    if ((word & kMoreFollows) == 0) messages->push_back(std::exchange(earlier_parts_, {}));
    at += kHeaderBytes + length + kWordBytes;
  }
  incoming_.erase(incoming_.begin(), incoming_.begin() + static_cast<std::ptrdiff_t>(at));
  return {};
}

Status ControlLink::arrived_changed() const {
  return Status::peer_lost(
      world_rank_,
      "a control message from " + name_ + " to " + own_name_ +
          " arrived with a wrong CRC32C: it was changed on the wire, in a network card "
          "or in memory, and was not used. Check the network hardware of the two hosts "
          "(ethtool -S, dmesg)");
}

Status ControlLink::read_failure(int error) const {
  switch (error) {
    case 0:
    case ECONNRESET:
    case EPIPE:
      return lost_because("has ended or left: it closed its control connection");
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return lost_because(std::string("cannot be reached: its host is down or cut off (") +
                          std::strerror(error) + ")");
    default:
      return lost_because(std::string("is lost: its control connection broke (") +
                          std::strerror(error) + ")");
  }
}

}  // namespace allring
