#include "collectives/transport/share_host_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/base/log.h"
#include "collectives/transport/segment.h"

namespace allring {

namespace {

/// Set in the channels that are for sharing memory only; no process set's number reaches it.
constexpr std::uint32_t kSharedMemoryChannel = 1u << 31;

/// What the first rank tells each other one, together with the memory's descriptor if there is any.
struct Offer {
  std::uint64_t bytes = 0;  ///< 0: there is no memory
  std::uint64_t slot_bytes = 0;
};

/// One byte: how a rank got on, and at the end whether all use the memory.
enum class Answer : std::uint8_t { kNo = 0, kYes = 1 };

Status send_answer(int socket, Answer answer, Deadline deadline, Cancel cancel) {
  return write_full(socket, std::as_bytes(std::span(&answer, 1)), deadline, cancel);
}

Result<Answer> receive_answer(int socket, Deadline deadline, Cancel cancel) {
  Answer answer = Answer::kNo;
  ALLRING_RETURN_IF_ERROR(
      read_full(socket, std::as_writable_bytes(std::span(&answer, 1)), deadline, cancel));
  return answer;
}

/// A segment for the largest shape that there is memory for; halves shape->slot_bytes until it
/// fits.
Result<std::shared_ptr<Segment>> reserve(HostMemory::Shape* shape) {
  const std::size_t least = std::min(shape->slot_bytes, kLeastSlotBytes);
  while (true) {
    Result<std::shared_ptr<Segment>> segment = Segment::create(shape->bytes());
    const std::size_t half = shape->slot_bytes / 2 / 4096 * 4096;
    if (segment.ok() || segment.status().code() != StatusCode::kOutOfMemory || half < least) {
      return segment;
    }
    shape->slot_bytes = half;
  }
}

/// What one rank of the host does on behalf of the function below.
class Sharing {
 public:
  Sharing(Endpoint& endpoint, std::uint32_t channel, const std::vector<Rank>& members,
          HostMemory::Shape shape, Deadline deadline)
      : endpoint_(endpoint),
        channel_(channel | kSharedMemoryChannel),
        members_(members),
        shape_(shape),
        deadline_(deadline) {}

  /// Null: all agreed to go without.
  Result<std::shared_ptr<Segment>> offer() {
    const std::size_t wanted_slot = shape_.slot_bytes;
    Result<std::shared_ptr<Segment>> segment = reserve(&shape_);
    std::string reason;
    if (!segment.ok()) reason = segment.status().message();
    ALLRING_RETURN_IF_ERROR(offer_to_all(segment.ok() ? segment->get() : nullptr, &reason));
    if (!reason.empty()) {
      ALLRING_LOG(kWarning,
                  "the ranks on host "
                      << endpoint_.info().hostname
                      << " go without shared memory, over sockets, which is slower: " << reason);
      return std::shared_ptr<Segment>();
    }
    if (shape_.slot_bytes < wanted_slot) {
      ALLRING_LOG(kWarning, "the ranks on host "
                                << endpoint_.info().hostname << " use shared-memory slots of "
                                << shape_.slot_bytes << " bytes instead of " << wanted_slot
                                << " for lack of memory");
    }
    return segment;
  }

  Result<std::shared_ptr<Segment>> take() {
    const Rank leader = members_.front();
    ALLRING_ASSIGN_OR_RETURN(const Fd socket, endpoint_.accept(channel_, leader, deadline_));
    Result<std::shared_ptr<Segment>> taken = take_over(socket.get());
    if (taken.ok() || taken.status().code() != StatusCode::kPeerLost) return taken;
    return Status::peer_lost(
        leader, endpoint_.peer(leader).describe() +
                    " went away while it shared its memory: " + taken.status().message());
  }

  const HostMemory::Shape& shape() const { return shape_; }

 private:
  Status offer_to_all(Segment* segment, std::string* reason) {
    std::vector<Fd> sockets;
    for (std::size_t i = 1; i < members_.size(); ++i) {
      ALLRING_ASSIGN_OR_RETURN(Fd socket, endpoint_.connect(members_[i], channel_, deadline_));
      const Offer offer{segment != nullptr ? segment->bytes().size() : 0, shape_.slot_bytes};
      ALLRING_RETURN_IF_ERROR(about(
          members_[i], send_with_fd(socket.get(), std::as_bytes(std::span(&offer, 1)),
                                    segment != nullptr ? segment->fd() : -1, deadline_, cancel())));
      sockets.push_back(std::move(socket));
    }
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      const Result<Answer> answer = receive_answer(sockets[i].get(), deadline_, cancel());
      ALLRING_RETURN_IF_ERROR(about(members_[i + 1], answer.status()));
      if (*answer == Answer::kNo && reason->empty()) {
        *reason = endpoint_.peer(members_[i + 1]).describe() + " cannot map it";
      }
    }
    const Answer verdict = reason->empty() ? Answer::kYes : Answer::kNo;
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      ALLRING_RETURN_IF_ERROR(
          about(members_[i + 1], send_answer(sockets[i].get(), verdict, deadline_, cancel())));
    }
    return {};
  }

  Result<std::shared_ptr<Segment>> take_over(int socket) {
    Offer offer;
    ALLRING_ASSIGN_OR_RETURN(
        Fd memory,
        receive_with_fd(socket, std::as_writable_bytes(std::span(&offer, 1)), deadline_, cancel()));
    shape_.slot_bytes = offer.slot_bytes;
    std::shared_ptr<Segment> segment;
    if (memory) {
      Result<std::shared_ptr<Segment>> attached = Segment::attach(std::move(memory), offer.bytes);
      if (attached.ok() && shape_.bytes() <= offer.bytes) {
        segment = *attached;
      } else {
        ALLRING_LOG(kDebug, endpoint_.info().describe() << " cannot use the shared memory: "
                                                        << attached.status().message());
      }
    }
    ALLRING_RETURN_IF_ERROR(
        send_answer(socket, segment ? Answer::kYes : Answer::kNo, deadline_, cancel()));
    ALLRING_ASSIGN_OR_RETURN(const Answer verdict, receive_answer(socket, deadline_, cancel()));
    if (verdict == Answer::kNo) segment.reset();
    return segment;
  }

  /// `status` with the peer that it is about.
  Status about(Rank peer, Status status) const {
    if (status.ok()) return status;
    ALLRING_RETURN_IF_ERROR(endpoint_.abort_reason());
    const std::string message =
        endpoint_.peer(peer).describe() + " while sharing memory: " + status.message();
    if (status.code() == StatusCode::kPeerLost) return Status::peer_lost(peer, message);
    return Status(status.code(), message);
  }

  Cancel cancel() const { return endpoint_.abort_fd(); }

  Endpoint& endpoint_;
  std::uint32_t channel_;
  const std::vector<Rank>& members_;
  HostMemory::Shape shape_;
  Deadline deadline_;
};

}  // namespace

Result<std::unique_ptr<HostMemory>> share_host_memory(Endpoint& endpoint, std::uint32_t channel,
                                                      const std::vector<Rank>& members,
                                                      HostMemory::Shape shape, WaitPolicy policy,
                                                      Deadline deadline) {
  const auto me = std::find(members.begin(), members.end(), endpoint.rank());
  ALLRING_CHECK(me != members.end(), "who shares memory is one of the members");
  const auto willing = [&](Rank rank) { return endpoint.peer(rank).shared_memory; };
  if (members.size() < 2 || !std::all_of(members.begin(), members.end(), willing)) {
    return std::unique_ptr<HostMemory>();
  }
  shape.ranks = static_cast<int>(members.size());
  Sharing sharing(endpoint, channel, members, shape, deadline);
  ALLRING_ASSIGN_OR_RETURN(std::shared_ptr<Segment> segment,
                           me == members.begin() ? sharing.offer() : sharing.take());
  if (!segment) return std::unique_ptr<HostMemory>();
  segment->close_fd();
  const std::span<std::byte> memory = segment->bytes().first(sharing.shape().bytes());
  return std::make_unique<HostMemory>(sharing.shape(), static_cast<Rank>(me - members.begin()),
                                      memory, std::move(segment), policy);
}

}  // namespace allring
