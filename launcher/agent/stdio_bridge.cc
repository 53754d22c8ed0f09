#include "launcher/agent/stdio_bridge.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/thread.h"

namespace allring {

namespace {

/// Bytes read from one descriptor that the other has not taken yet.
class Flow {
 public:
  Flow(int from, int to) : from_(from), to_(to), buffer_(256 << 10) {}

  bool wants_read() const { return !ended_ && begin_ == end_; }
  bool wants_write() const { return !broken_ && begin_ < end_; }
  /// Nothing will come any more, and what came is out or has nowhere to go.
  bool done() const { return broken_ || (ended_ && begin_ == end_); }
  bool ended() const { return ended_; }

  void read() {
    const ssize_t got = ::read(from_, buffer_.data(), buffer_.size());
    if (got > 0) {
      begin_ = 0;
      end_ = static_cast<std::size_t>(got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      ended_ = true;
    }
  }

  void write() {
    const ssize_t written = ::write(to_, buffer_.data() + begin_, end_ - begin_);
    if (written >= 0) {
      begin_ += static_cast<std::size_t>(written);
    } else if (errno != EAGAIN && errno != EINTR) {
      broken_ = true;
    }
  }

 private:
  int from_;
  int to_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool ended_ = false;
  bool broken_ = false;
};

}  // namespace

Result<StdioBridge::Connection> StdioBridge::connect() {
  struct stat in;
  struct stat out;
  Connection connection;
  if (::fstat(0, &in) == 0 && ::fstat(1, &out) == 0 && S_ISSOCK(in.st_mode) &&
      in.st_ino == out.st_ino && in.st_dev == out.st_dev) {
    connection.socket.reset(::fcntl(0, F_DUPFD_CLOEXEC, 3));
    if (!connection.socket) return Status::from_errno("standard input", errno);
    return connection;
  }
  ALLRING_ASSIGN_OR_RETURN(auto pair, make_socket_pair());
  connection.socket = std::move(pair.first);
  connection.bridge.reset(new StdioBridge(std::move(pair.second)));
  return connection;
}

StdioBridge::StdioBridge(FileDescriptor socket) : socket_(std::move(socket)) {
  set_nonblocking(socket_.get());
  set_nonblocking(0);
  set_nonblocking(1);
  thread_ = start_thread("stdio-bridge", [this] { run(); });
}

StdioBridge::~StdioBridge() { thread_.join(); }

void StdioBridge::run() {
  Flow inward(0, socket_.get());
  Flow outward(socket_.get(), 1);
  Deadline deadline = kNoDeadline;
  bool driver_gone = false;
  while (!outward.done()) {
    pollfd fds[4] = {
        {inward.wants_read() ? 0 : -1, POLLIN, 0},
        {inward.wants_write() ? socket_.get() : -1, POLLOUT, 0},
        {outward.wants_read() ? socket_.get() : -1, POLLIN, 0},
        {outward.wants_write() ? 1 : -1, POLLOUT, 0},
    };
    ::poll(fds, 4, deadline == kNoDeadline ? -1 : 100);
    if (fds[0].revents != 0) inward.read();
    if (fds[1].revents != 0) inward.write();
    if (fds[2].revents != 0) outward.read();
    if (fds[3].revents != 0) outward.write();
    if (inward.done() && !driver_gone) {
      driver_gone = true;
      ::shutdown(socket_.get(), SHUT_WR);  // the agent sees the end of its connection
    }
    if (outward.ended() && deadline == kNoDeadline) deadline = deadline_after(seconds(2));
    if (Clock::real().now() >= deadline) return;
  }
  // Nobody reads what the agent says: end its connection too.
  ::shutdown(socket_.get(), SHUT_RDWR);
}

}  // namespace allring
