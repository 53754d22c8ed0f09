#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/endpoint.h"
#include "collectives/transport/host_memory.h"
#include "collectives/transport/transport.h"

namespace allring {

/// The Transport between processes: a link per ordered pair of ranks that have something to say to
/// each other, made when the first message is sent. Ranks of one host use a ring in shared memory,
/// or unix sockets where they may not share memory; ranks of different hosts use TCP.
///
/// A message travels as a frame: tag, length, payload; payloads go from the sender's
/// memory to the receiver's posted buffer with no copy between but the kernel's or the ring's.
/// Frames on TCP carry CRC32C of header and payload; a frame that arrives changed is kInternal
/// naming the link.
///
/// A connection that cannot be made fails the next wait(). A closed connection is kPeerLost naming
/// rank, host and pid. Peers that have not connected yet are waited for until the deadline or
/// abort(): only the control plane can know that they are gone.
class MeshTransport final : public Transport {
 public:
  struct Settings {
    std::uint32_t channel = 1;  ///< of this lane; one MeshTransport each
    /// World ranks in the order of the group's numbering; empty: all ranks of the endpoint.
    std::vector<Rank> members;
    WaitPolicy wait;
    bool shared_memory = true;  ///< false: unix sockets between ranks of one host
    /// For the ring of one link: all links of a host and lane together take at most this much.
    std::size_t shared_memory_bytes = 32 << 20;
    /// For the peer's endpoint to answer when it is sent to for the first time. Meanwhile all else
    /// goes on.
    nanoseconds connect_timeout = seconds(30);
  };

  /// @param endpoint knows its peers; outlives the transport; not owned.
  /// @return kInvalidArgument if this rank is not among the members, kOutOfMemory.
  static Result<std::unique_ptr<MeshTransport>> create(Endpoint& endpoint, Settings settings);
  ~MeshTransport() override;

  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  Result<Ticket> post_send(Rank peer, Tag tag, std::span<const std::byte> bytes) override;
  Result<Ticket> post_recv(Rank peer, Tag tag, std::span<std::byte> bytes) override;
  Status wait(Ticket ticket, Deadline deadline) override;
  void abort(Status reason) noexcept override;

 private:
  class Impl;
  MeshTransport(std::unique_ptr<Impl> impl, Rank rank, int size);

  std::unique_ptr<Impl> impl_;
  Rank rank_;
  int size_;
};

}  // namespace allring
