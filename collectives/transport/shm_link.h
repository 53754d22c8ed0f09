#pragma once

#include <memory>
#include <optional>

#include "collectives/transport/link.h"
#include "collectives/transport/segment.h"
#include "collectives/transport/shm_ring.h"
#include "collectives/transport/socket.h"

namespace allring {

/// A link in one direction through a ring of bytes in shared memory. A unix socket between the same
/// two processes carries a byte whenever a sleeping side has to be woken, and its end tells that
/// the other process is gone; so a sleeper can wait for rings and sockets at once.
class ShmLink final : public Link {
 public:
  enum class Direction { kWriting, kReading };

  /// @param ring zeroed memory of shm_ring_bytes(a power of two) that both sides map.
  ShmLink(Direction direction, std::shared_ptr<Segment> ring, Fd socket);

  Result<std::size_t> try_write(std::span<const Source> parts) override;
  Result<std::size_t> try_read(std::span<const Sink> parts) override;
  bool cheap() const override { return true; }
  int fd() const override { return socket_.get(); }
  short prepare_sleep(bool reading, bool writing) override;
  void finish_sleep() override;

 private:
  void ring_doorbell();
  void answer_doorbell();
  bool other_side_gone();

  std::shared_ptr<Segment> segment_;
  Fd socket_;
  std::optional<ShmRingWriter> writer_;
  std::optional<ShmRingReader> reader_;
  int idle_tries_ = 0;
  bool closed_ = false;
};

}  // namespace allring
