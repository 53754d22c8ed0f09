#include "collectives/transport/inproc.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace allring {

namespace {

struct Operation {
  bool sending = false;
  Tag tag = 0;
  const std::byte* source = nullptr;  // of a send
  std::byte* target = nullptr;        // of a receive
  std::size_t bytes = 0;
  std::unique_ptr<std::byte[]> copy;  // of a send that is complete but not yet received
  bool done = false;
  Status status;
};
using OperationPointer = std::shared_ptr<Operation>;

std::string describe(const Operation& operation) {
  return "tag " + std::to_string(operation.tag) + ", " + std::to_string(operation.bytes) + " bytes";
}

}  // namespace

/// Messages from one rank to another. Whoever posts second copies the bytes.
class InprocNetwork::Mailbox {
 public:
  Mailbox(Rank from, Rank to, Mode mode) : from_(from), to_(to), mode_(mode) {}

  void send(const OperationPointer& operation) {
    std::lock_guard lock(mutex_);
    if (!reason_.ok()) return finish(*operation, verdict(from_));
    if (receives_.empty() && mode_ == Mode::kBuffered) {
      operation->copy = std::make_unique<std::byte[]>(operation->bytes);
      if (operation->bytes > 0)
        std::memcpy(operation->copy.get(), operation->source, operation->bytes);
      operation->source = operation->copy.get();
      operation->done = true;
    }
    sends_.push_back(operation);
    match();
  }

  void receive(const OperationPointer& operation) {
    std::lock_guard lock(mutex_);
    if (!reason_.ok() && sends_.empty()) return finish(*operation, verdict(to_));
    receives_.push_back(operation);
    match();
  }

  Status wait(const Operation& operation, Deadline deadline) {
    std::unique_lock lock(mutex_);
    const auto done = [&] { return operation.done; };
    if (deadline == kNoDeadline) {
      changed_.wait(lock, done);
    } else if (!changed_.wait_until(lock, deadline, done)) {
      const Rank waiting = operation.sending ? from_ : to_;
      const Rank awaited = operation.sending ? to_ : from_;
      return Status::timed_out("rank " + std::to_string(waiting) + " waited for rank " +
                               std::to_string(awaited) + " to " +
                               (operation.sending ? "receive" : "send") + " " +
                               describe(operation) + ", which it did not do in time");
    }
    return operation.status;
  }

  /// Ends the mailbox because `rank` gives up: it gets `reason`, the other side has lost a peer.
  /// Afterwards no buffer of either is touched.
  void close(Rank rank, const Status& reason) {
    std::lock_guard lock(mutex_);
    if (reason_.ok()) {
      reason_ = reason;
      closed_by_ = rank;
    }
    // What the sender had sent in full still arrives; nothing reaches a receiver that is gone.
    std::deque<OperationPointer> arrived;
    for (const OperationPointer& send : sends_) {
      if (!send->done) {
        finish(*send, verdict(from_));
      } else if (rank == from_) {
        arrived.push_back(send);
      }
    }
    sends_ = std::move(arrived);
    for (const OperationPointer& receive : receives_) finish(*receive, verdict(to_));
    receives_.clear();
  }

 private:
  Status verdict(Rank asking) const {
    if (asking == closed_by_) return reason_;
    // Passing on a loss names the rank that was lost first.
    return Status::peer_lost(reason_.lost_rank().value_or(closed_by_),
                             "rank " + std::to_string(asking) + " lost rank " +
                                 std::to_string(closed_by_) + ", which gave up (" +
                                 reason_.to_string() + ")");
  }

  void match() {
    while (!sends_.empty() && !receives_.empty()) {
      const OperationPointer send = std::move(sends_.front());
      const OperationPointer receive = std::move(receives_.front());
      sends_.pop_front();
      receives_.pop_front();
      Status status;
      if (send->tag != receive->tag || send->bytes != receive->bytes) {
        status =
            Status::internal("rank " + std::to_string(to_) + " expected " + describe(*receive) +
                             " from rank " + std::to_string(from_) + " and got " + describe(*send) +
                             ": the ranks run different collectives");
      } else if (send->bytes > 0) {
        std::memcpy(receive->target, send->source, send->bytes);
      }
      finish(*receive, status);
      if (!send->done) finish(*send, status);
    }
  }

  void finish(Operation& operation, Status status) {
    operation.status = std::move(status);
    operation.done = true;
    changed_.notify_all();
  }

  const Rank from_;
  const Rank to_;
  const Mode mode_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<OperationPointer> sends_;
  std::deque<OperationPointer> receives_;
  Rank closed_by_ = -1;
  Status reason_;  // why the mailbox is closed; ok while it is open
};

class InprocNetwork::Endpoint final : public Transport {
 public:
  Endpoint(InprocNetwork& network, Rank rank, int size)
      : network_(network), rank_(rank), size_(size) {}

  Rank rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<Ticket> post_send(Rank peer, Tag tag, std::span<const std::byte> bytes) override {
    auto operation = std::make_shared<Operation>();
    operation->sending = true;
    operation->tag = tag;
    operation->source = bytes.data();
    operation->bytes = bytes.size();
    return post(peer, std::move(operation));
  }

  Result<Ticket> post_recv(Rank peer, Tag tag, std::span<std::byte> bytes) override {
    auto operation = std::make_shared<Operation>();
    operation->tag = tag;
    operation->target = bytes.data();
    operation->bytes = bytes.size();
    return post(peer, std::move(operation));
  }

  Status wait(Ticket ticket, Deadline deadline) override {
    const auto found = posted_.find(ticket);
    ALLRING_CHECK(found != posted_.end(), "a ticket is waited for exactly once");
    const auto [mailbox, operation] = std::move(found->second);
    posted_.erase(found);
    const Status status = mailbox->wait(*operation, deadline);
    // The caller may now free the buffers of its other operations: nobody may touch them.
    if (!status.ok()) abort(status);
    return status;
  }

  void abort(Status reason) noexcept override {
    ALLRING_CHECK(!reason.ok(), "abort needs a reason");
    for (Rank peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      mailbox(rank_, peer).close(rank_, reason);
      mailbox(peer, rank_).close(rank_, reason);
    }
  }

 private:
  Mailbox& mailbox(Rank from, Rank to) { return *network_.mailboxes_[from * size_ + to]; }

  Result<Ticket> post(Rank peer, OperationPointer operation) {
    ALLRING_CHECK(peer >= 0 && peer < size_ && peer != rank_, "no such peer");
    Mailbox& box = operation->sending ? mailbox(rank_, peer) : mailbox(peer, rank_);
    if (operation->sending) {
      box.send(operation);
    } else {
      box.receive(operation);
    }
    const Ticket ticket = ++last_ticket_;
    posted_.emplace(ticket, std::pair(&box, std::move(operation)));
    return ticket;
  }

  InprocNetwork& network_;
  const Rank rank_;
  const int size_;
  Ticket last_ticket_ = 0;
  std::unordered_map<Ticket, std::pair<Mailbox*, OperationPointer>> posted_;
};

InprocNetwork::InprocNetwork(int size, Mode mode) {
  ALLRING_CHECK(size >= 1, "a network has at least one rank");
  for (Rank from = 0; from < size; ++from) {
    for (Rank to = 0; to < size; ++to)
      mailboxes_.push_back(std::make_unique<Mailbox>(from, to, mode));
  }
  for (Rank rank = 0; rank < size; ++rank)
    transports_.push_back(std::make_unique<Endpoint>(*this, rank, size));
}

InprocNetwork::~InprocNetwork() = default;

}  // namespace allring
