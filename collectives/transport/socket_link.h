#pragma once

#include "collectives/transport/link.h"
#include "collectives/transport/socket.h"

namespace allring {

/// A link over a connected stream socket: the kernel copies from the caller's memory and to it.
class SocketLink final : public Link {
 public:
  explicit SocketLink(Fd socket);

  Result<std::size_t> try_write(std::span<const Source> parts) override;
  Result<std::size_t> try_read(std::span<const Sink> parts) override;
  bool cheap() const override { return false; }
  int fd() const override { return socket_.get(); }
  short prepare_sleep(bool reading, bool writing) override;
  void finish_sleep() override {}

 private:
  Fd socket_;
};

}  // namespace allring
