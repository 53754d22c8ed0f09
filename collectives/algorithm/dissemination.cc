#include "collectives/algorithm/dissemination.h"

#include "collectives/algorithm/cost_model.h"
#include "collectives/schedule/tree.h"

namespace allring {

namespace {

bool supports(const CollectiveArgs&, Group& group) { return group.size() >= 2; }

Status run(const CollectiveArgs&, Group& group, Deadline deadline) {
  Transport& transport = group.transport();
  const Tag tag = group.next_tag();
  for (int step = 0; step < dissemination_steps(group.size()); ++step) {
    const DisseminationStep peers = dissemination_step(group.rank(), group.size(), step);
    ALLRING_ASSIGN_OR_RETURN(const Ticket receive, transport.post_recv(peers.recv_from, tag, {}));
    ALLRING_ASSIGN_OR_RETURN(const Ticket send, transport.post_send(peers.send_to, tag, {}));
    ALLRING_RETURN_IF_ERROR(transport.wait(receive, deadline));
    ALLRING_RETURN_IF_ERROR(transport.wait(send, deadline));
  }
  return {};
}

double cost_us(const CollectiveArgs&, Group& group) {
  return dissemination_steps(group.size()) * message_cost(group).alpha_us;
}

}  // namespace

constinit const Algorithm kDisseminationBarrier{"dissemination", CollectiveKind::kBarrier, supports,
                                                run, cost_us};

}  // namespace allring
