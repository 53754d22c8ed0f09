#include "test/harness/fault_plan.h"

#include <string>

namespace allring::test {

Status FaultyTransport::next_operation() {
  ++operations_;
  if (plan_.rank != rank() || operations_ < plan_.operation) return {};
  const Status death =
      Status::aborted("rank " + std::to_string(rank()) + " dies, as planned, at operation " +
                      std::to_string(plan_.operation));
  below_.abort(death);
  return death;
}

Result<Ticket> FaultyTransport::post_send(Rank peer, Tag tag, std::span<const std::byte> bytes) {
  ALLRING_RETURN_IF_ERROR(next_operation());
  return below_.post_send(peer, tag, bytes);
}

Result<Ticket> FaultyTransport::post_recv(Rank peer, Tag tag, std::span<std::byte> bytes) {
  ALLRING_RETURN_IF_ERROR(next_operation());
  return below_.post_recv(peer, tag, bytes);
}

Status FaultyTransport::wait(Ticket ticket, Deadline deadline) {
  ALLRING_RETURN_IF_ERROR(next_operation());
  return below_.wait(ticket, deadline);
}

}  // namespace allring::test
