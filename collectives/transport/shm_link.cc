#include "collectives/transport/shm_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace allring {

namespace {

/// One that never sleeps looks at the socket once in so many vain tries, for the other's end.
constexpr int kTriesPerLook = 4096;

Status overwritten() {
  return Status::internal(
      "the ring in shared memory between the two was overwritten; one of the processes has a fault "
      "that writes where it must not");
}

}  // namespace

ShmLink::ShmLink(Direction direction, std::shared_ptr<Segment> ring, Fd socket)
    : segment_(std::move(ring)), socket_(std::move(socket)) {
  segment_->close_fd();
  if (direction == Direction::kWriting) {
    writer_.emplace(segment_->bytes());
  } else {
    reader_.emplace(segment_->bytes());
  }
}

void ShmLink::ring_doorbell() {
  const char byte = 0;
  // Fails when the other side is gone, which it shows itself, or when more bells than the socket
  // holds have rung unheard, which wake as well.
  [[maybe_unused]] const ssize_t sent = send(socket_.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void ShmLink::answer_doorbell() {
  char bytes[64];
  while (true) {
    const ssize_t got = recv(socket_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof(bytes)) || (got < 0 && errno == EINTR)) continue;
    if (got == 0 || (got < 0 && errno != EAGAIN)) closed_ = true;
    return;
  }
}

bool ShmLink::other_side_gone() {
  if (!closed_ && ++idle_tries_ >= kTriesPerLook) {
    idle_tries_ = 0;
    answer_doorbell();
  }
  return closed_;
}

Result<std::size_t> ShmLink::try_write(std::span<const Source> parts) {
  const std::size_t moved = writer_->write(parts);
  if (moved > 0) {
    if (writer_->reader_needs_waking()) ring_doorbell();
    return moved;
  }
  if (writer_->broken()) return overwritten();
  if (other_side_gone()) return Status(StatusCode::kPeerLost, "the connection was closed");
  return moved;
}

Result<std::size_t> ShmLink::try_read(std::span<const Sink> parts) {
  std::size_t moved = reader_->read(parts);
  if (reader_->broken()) return overwritten();
  if (moved == 0 && other_side_gone()) {
    // It may have written before it closed, and after we looked.
    moved = reader_->read(parts);
    if (moved == 0) return Status(StatusCode::kPeerLost, "the connection was closed");
  }
  if (moved > 0 && reader_->writer_needs_waking()) ring_doorbell();
  return moved;
}

short ShmLink::prepare_sleep(bool reading, bool writing) {
  if (closed_) return 0;
  if (reading && !reader_->fall_asleep()) return 0;
  if (writing && !writer_->fall_asleep()) return 0;
  return POLLIN;
}

void ShmLink::finish_sleep() {
  if (reader_) reader_->wake_up();
  if (writer_) writer_->wake_up();
  answer_doorbell();
}

}  // namespace allring
