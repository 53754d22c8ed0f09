#include "runtime/negotiation/inproc_control_channel.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>

#include "collectives/base/check.h"

namespace allring {

struct InprocControlHub::State {
  struct Inbox {
    std::condition_variable arrived;
    std::deque<ControlEvent> events;
    bool woken = false;  // a kWoken is among the events
    bool taken = false;
    bool gone = false;
  };

  explicit State(int size) : inboxes(size) {}

  // REQUIRES: mutex held.
  void deliver(Rank to, ControlEvent event) {
    inboxes[to].events.push_back(std::move(event));
    inboxes[to].arrived.notify_one();
  }

  // REQUIRES: mutex held. Both ends of the link see it go.
  void cut(Rank one, Rank other, const std::string& why) {
    if (inboxes[one].gone || inboxes[other].gone) return;
    for (auto [from, to] : {std::pair(one, other), std::pair(other, one)}) {
      ControlEvent lost;
      lost.kind = ControlEvent::Kind::kPeerLost;
      lost.peer = from;
      lost.reason = Status::peer_lost(from, "rank " + std::to_string(from) + " " + why);
      deliver(to, std::move(lost));
    }
  }

  void leave(Rank rank, const std::string& why) {
    std::lock_guard lock(mutex);
    if (inboxes[rank].gone) return;
    const int size = static_cast<int>(inboxes.size());
    for (Rank peer = rank == 0 ? 1 : 0; peer < (rank == 0 ? size : 1); ++peer) cut(rank, peer, why);
    inboxes[rank].gone = true;
  }

  std::mutex mutex;
  std::vector<Inbox> inboxes;
};

class InprocControlHub::Channel final : public ControlChannel {
 public:
  Channel(std::shared_ptr<State> state, Rank rank) : state_(std::move(state)), rank_(rank) {
    for (Rank child = 1; rank == 0 && child < size(); ++child) children_.push_back(child);
  }
  ~Channel() override { state_->leave(rank_, "closed its control channel"); }

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(state_->inboxes.size()); }
  Rank parent() const override { return rank_ == 0 ? -1 : 0; }
  std::span<const Rank> children() const override { return children_; }

  void send(Rank peer, std::span<const std::byte> bytes) override {
    ALLRING_CHECK(peer >= 0 && peer < size() && peer != rank_ && (peer == 0 || rank_ == 0),
                  "the peer is no neighbour in the star");
    ControlEvent message;
    message.kind = ControlEvent::Kind::kMessage;
    message.peer = rank_;
    message.bytes.assign(bytes.begin(), bytes.end());
    std::lock_guard lock(state_->mutex);
    if (state_->inboxes[rank_].gone || state_->inboxes[peer].gone) return;
    state_->deliver(peer, std::move(message));
  }

  ControlEvent receive(Deadline deadline) override {
    std::unique_lock lock(state_->mutex);
    State::Inbox& inbox = state_->inboxes[rank_];
    const auto something = [&inbox] { return !inbox.events.empty(); };
    if (deadline == kNoDeadline) {
      inbox.arrived.wait(lock, something);
    } else if (!inbox.arrived.wait_until(lock, deadline, something)) {
      return {};
    }
    ControlEvent event = std::move(inbox.events.front());
    inbox.events.pop_front();
    if (event.kind == ControlEvent::Kind::kWoken) inbox.woken = false;
    return event;
  }

  void wake() override {
    std::lock_guard lock(state_->mutex);
    if (std::exchange(state_->inboxes[rank_].woken, true)) return;
    ControlEvent woken;
    woken.kind = ControlEvent::Kind::kWoken;
    state_->deliver(rank_, std::move(woken));
  }

 private:
  std::shared_ptr<State> state_;
  Rank rank_;
  std::vector<Rank> children_;
};

InprocControlHub::InprocControlHub(int size) : state_(std::make_shared<State>(size)) {
  ALLRING_CHECK(size >= 1, "a group has a rank");
}

InprocControlHub::~InprocControlHub() = default;

std::unique_ptr<ControlChannel> InprocControlHub::channel(Rank rank) {
  ALLRING_CHECK(rank >= 0 && rank < static_cast<int>(state_->inboxes.size()), "no such rank");
  std::lock_guard lock(state_->mutex);
  ALLRING_CHECK(!std::exchange(state_->inboxes[rank].taken, true), "one channel per rank");
  return std::make_unique<Channel>(state_, rank);
}

void InprocControlHub::kill(Rank rank) {
  ALLRING_CHECK(rank >= 0 && rank < static_cast<int>(state_->inboxes.size()), "no such rank");
  state_->leave(rank, "was killed");
}

}  // namespace allring
