#include "collectives/algorithm/binomial.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "collectives/algorithm/cost_model.h"
#include "collectives/schedule/tree.h"

namespace allring {

namespace {

constexpr std::size_t kSegmentBytes = 128 * 1024;
constexpr std::size_t kWindow = 4;  // segments posted ahead

bool supports(const CollectiveArgs&, Group& group) { return group.size() >= 2; }

Status run(const CollectiveArgs& args, Group& group, Deadline deadline) {
  const TreePlace place = binomial_tree(group.rank(), group.size(), args.root);
  const std::span data(static_cast<std::byte*>(args.output), args.bytes());
  const std::size_t segments = (data.size() + kSegmentBytes - 1) / kSegmentBytes;
  const auto segment = [&](std::size_t index) {
    return data.subspan(index * kSegmentBytes,
                        std::min(kSegmentBytes, data.size() - index * kSegmentBytes));
  };
  Transport& transport = group.transport();
  const Tag tag = group.next_tag();

  Ticket receives[kWindow] = {};
  const auto post_receive = [&](std::size_t index) -> Status {
    if (!place.parent || index >= segments) return {};
    ALLRING_ASSIGN_OR_RETURN(receives[index % kWindow],
                             transport.post_recv(*place.parent, tag, segment(index)));
    return {};
  };
  for (std::size_t index = 0; index < kWindow; ++index)
    ALLRING_RETURN_IF_ERROR(post_receive(index));

  std::vector<Ticket> sends[kWindow];
  const auto finish_sends = [&](std::vector<Ticket>& tickets) -> Status {
    for (Ticket ticket : tickets) ALLRING_RETURN_IF_ERROR(transport.wait(ticket, deadline));
    tickets.clear();
    return {};
  };
  for (std::size_t index = 0; index < segments; ++index) {
    if (place.parent) {
      ALLRING_RETURN_IF_ERROR(transport.wait(receives[index % kWindow], deadline));
      ALLRING_RETURN_IF_ERROR(post_receive(index + kWindow));
    }
    std::vector<Ticket>& tickets = sends[index % kWindow];
    ALLRING_RETURN_IF_ERROR(finish_sends(tickets));
    for (Rank child : place.children) {
      ALLRING_ASSIGN_OR_RETURN(tickets.emplace_back(),
                               transport.post_send(child, tag, segment(index)));
    }
  }
  for (auto& tickets : sends) ALLRING_RETURN_IF_ERROR(finish_sends(tickets));
  return {};
}

double cost_us(const CollectiveArgs& args, Group& group) {
  const MessageCost message = message_cost(group);
  const double depth = std::bit_width(static_cast<unsigned>(group.size() - 1));
  return depth * (message.alpha_us + args.bytes() * message.us_per_byte);
}

}  // namespace

constinit const Algorithm kBinomialBroadcast{"binomial", CollectiveKind::kBroadcast, supports, run,
                                             cost_us};

}  // namespace allring
