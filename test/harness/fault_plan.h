#pragma once

#include <cstdint>

#include "collectives/transport/transport.h"

namespace allring::test {

/// Which rank dies, and at which of its transport operations (posts and waits, counted from 1).
struct FaultPlan {
  Rank rank = -1;  ///< -1: nobody
  std::uint64_t operation = 0;
};

/// A transport that works until the planned operation of its rank and then dies: it aborts the one
/// below, which the others see as the loss of a peer, and fails itself with kAborted.
class FaultyTransport final : public Transport {
 public:
  FaultyTransport(Transport& below, FaultPlan plan) : below_(below), plan_(plan) {}

  Rank rank() const override { return below_.rank(); }
  int size() const override { return below_.size(); }
  Result<Ticket> post_send(Rank peer, Tag tag, std::span<const std::byte> bytes) override;
  Result<Ticket> post_recv(Rank peer, Tag tag, std::span<std::byte> bytes) override;
  Status wait(Ticket ticket, Deadline deadline) override;
  void abort(Status reason) noexcept override { below_.abort(std::move(reason)); }

  std::uint64_t operations() const { return operations_; }

 private:
  Status next_operation();

  Transport& below_;
  const FaultPlan plan_;
  std::uint64_t operations_ = 0;
};

}  // namespace allring::test
