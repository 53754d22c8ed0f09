#include "collectives/transport/share_segment.h"

#include <algorithm>
#include <string>
#include <utility>

#include "collectives/base/log.h"

namespace allring {

namespace {

/// Set in the channels that are for sharing memory only; no process set's number reaches it.
constexpr std::uint32_t kSharedMemoryChannel = 1u << 31;

/// What the first rank tells each other one, together with the memory's descriptor if there is any.
struct Offer {
  std::uint64_t bytes = 0;  ///< 0: there is no memory
  std::uint64_t note = 0;
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

/// What one rank of the host does on behalf of the function below.
class Sharing {
 public:
  Sharing(Endpoint& endpoint, std::uint32_t channel, const std::vector<Rank>& members,
          std::string_view without, Deadline deadline)
      : endpoint_(endpoint),
        channel_(channel | kSharedMemoryChannel),
        members_(members),
        without_(without),
        deadline_(deadline) {}

  Result<SharedSegment> offer(const std::function<Result<SharedSegment>()>& make) {
    Result<SharedSegment> made = make();
    std::string reason;
    if (!made.ok()) reason = made.status().message();
    ALLRING_RETURN_IF_ERROR(offer_to_all(made.ok() ? *made : SharedSegment(), &reason));
    if (reason.empty()) return made;
    ALLRING_LOG(kWarning, "the ranks on host " << endpoint_.info().hostname << " go without "
                                               << without_ << ": " << reason);
    return SharedSegment();
  }

  Result<SharedSegment> take() {
    const Rank leader = members_.front();
    ALLRING_ASSIGN_OR_RETURN(const Fd socket, endpoint_.accept(channel_, leader, deadline_));
    Result<SharedSegment> taken = take_over(socket.get());
    if (taken.ok() || taken.status().code() != StatusCode::kPeerLost) return taken;
    return Status::peer_lost(
        leader, endpoint_.peer(leader).describe() +
                    " went away while it shared its memory: " + taken.status().message());
  }

 private:
  Status offer_to_all(const SharedSegment& made, std::string* reason) {
    Segment* const segment = made.segment.get();
    std::vector<Fd> sockets;
    for (std::size_t i = 1; i < members_.size(); ++i) {
      ALLRING_ASSIGN_OR_RETURN(Fd socket, endpoint_.connect(members_[i], channel_, deadline_));
      const Offer offer{segment != nullptr ? segment->bytes().size() : 0, made.note};
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

  Result<SharedSegment> take_over(int socket) {
    Offer offer;
    ALLRING_ASSIGN_OR_RETURN(
        Fd memory,
        receive_with_fd(socket, std::as_writable_bytes(std::span(&offer, 1)), deadline_, cancel()));
    SharedSegment taken;
    if (memory) {
      Result<std::shared_ptr<Segment>> attached = Segment::attach(std::move(memory), offer.bytes);
      if (attached.ok()) {
        taken = {*attached, offer.note};
      } else {
        ALLRING_LOG(kDebug, endpoint_.info().describe() << " cannot use the shared memory: "
                                                        << attached.status().message());
      }
    }
    ALLRING_RETURN_IF_ERROR(
        send_answer(socket, taken.segment ? Answer::kYes : Answer::kNo, deadline_, cancel()));
    ALLRING_ASSIGN_OR_RETURN(const Answer verdict, receive_answer(socket, deadline_, cancel()));
    if (verdict == Answer::kNo) taken.segment.reset();
    return taken;
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
  const std::string_view without_;
  Deadline deadline_;
};

}  // namespace

Result<SharedSegment> share_segment(Endpoint& endpoint, std::uint32_t channel,
                                    const std::vector<Rank>& members, std::string_view without,
                                    const std::function<Result<SharedSegment>()>& make,
                                    Deadline deadline) {
  ALLRING_CHECK(std::find(members.begin(), members.end(), endpoint.rank()) != members.end(),
                "who shares memory is one of the members");
  const auto willing = [&](Rank rank) { return endpoint.peer(rank).shared_memory; };
  if (members.size() < 2 || !std::all_of(members.begin(), members.end(), willing)) {
    return SharedSegment();
  }
  Sharing sharing(endpoint, channel, members, without, deadline);
  return endpoint.rank() == members.front() ? sharing.offer(make) : sharing.take();
}

}  // namespace allring
