#include "runtime/negotiation/controller.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include "runtime/request/wire.h"

using namespace allring;

namespace {

TimePoint at(double second) {
  return TimePoint(nanoseconds(static_cast<std::int64_t>(second * 1e9)));
}

// Messages between ranks of a tree; they arrive when the test says so.
struct Net {
  explicit Net(std::vector<Rank> parents) : parent(std::move(parents)) {
    children.resize(parent.size());
    for (Rank rank = 0; rank < static_cast<Rank>(parent.size()); ++rank)
      if (parent[rank] >= 0) children[parent[rank]].push_back(rank);
  }
  static Net star(int size) {
    std::vector<Rank> parents(size, 0);
    parents[0] = -1;
    return Net(std::move(parents));
  }

  std::vector<Rank> parent;
  std::vector<std::vector<Rank>> children;
  std::map<std::pair<Rank, Rank>, std::deque<std::vector<std::byte>>> links;
  std::size_t bytes = 0;
};

class TestChannel final : public ControlChannel {
 public:
  TestChannel(Net& net, Rank rank) : net_(net), rank_(rank) {}
  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(net_.parent.size()); }
  Rank parent() const override { return net_.parent[rank_]; }
  std::span<const Rank> children() const override { return net_.children[rank_]; }
  void send(Rank peer, std::span<const std::byte> bytes) override {
    net_.links[{rank_, peer}].emplace_back(bytes.begin(), bytes.end());
    net_.bytes += bytes.size();
  }
  ControlEvent receive(Deadline) override { return {}; }
  void wake() override {}

 private:
  Net& net_;
  Rank rank_;
};

struct Member {
  std::unique_ptr<TestChannel> channel;
  std::unique_ptr<Controller> controller;
  // What came of each submission: names in order of agreement, and failures.
  std::vector<std::string> agreed;
  std::map<std::string, Status> failed;
  Status ended;
  bool alive = true;
};

// Controllers of all ranks on one thread.
struct Party {
  explicit Party(Net network, std::size_t capacity = 100) : net(std::move(network)) {
    const int size = static_cast<int>(net.parent.size());
    Controller::Settings settings;
    settings.epoch = 5;
    settings.group.members.resize(size);
    std::iota(settings.group.members.begin(), settings.group.members.end(), 0);
    for (int i = 0; i < size; ++i)
      settings.group.descriptions.push_back("rank " + std::to_string(i) + " (host h)");
    settings.group.cache_capacity = capacity;
    settings.group.fusion = {1 << 20, 64 << 10};
    for (Rank rank = 0; rank < size; ++rank) {
      Member member;
      member.channel = std::make_unique<TestChannel>(net, rank);
      member.controller = std::make_unique<Controller>(*member.channel, settings, at(0));
      members.push_back(std::move(member));
    }
  }

  int size() const { return static_cast<int>(members.size()); }
  Controller& operator[](Rank rank) { return *members[rank].controller; }

  void submit(Rank rank, const std::vector<std::string>& names, std::int64_t count = 4) {
    std::vector<Submission> submissions;
    for (const std::string& name : names) {
      Submission submission;
      submission.request.name = name;
      submission.request.shape = {count};
      submissions.push_back(std::move(submission));
    }
    (*this)[rank].submit(std::move(submissions), at(now));
  }
  void submit_all(const std::vector<std::string>& names, std::int64_t count = 4) {
    for (Rank rank = 0; rank < size(); ++rank) submit(rank, names, count);
  }

  void lose(Rank rank) {
    members[rank].alive = false;
    for (Rank other = 0; other < size(); ++other) {
      if (net.parent[other] != rank && net.parent[rank] != other) continue;
      deliver_all(rank, other);
      ControlEvent lost;
      lost.kind = ControlEvent::Kind::kPeerLost;
      lost.peer = rank;
      lost.reason = Status::peer_lost(rank, "connection closed");
      (*this)[other].handle(std::move(lost), at(now));
    }
  }

  void deliver_one(Rank from, Rank to) {
    auto& queue = net.links[{from, to}];
    ControlEvent event;
    event.kind = ControlEvent::Kind::kMessage;
    event.peer = from;
    event.bytes = std::move(queue.front());
    queue.pop_front();
    if (members[to].alive) (*this)[to].handle(std::move(event), at(now));
  }
  void deliver_all(Rank from, Rank to) {
    while (!net.links[{from, to}].empty()) deliver_one(from, to);
  }

  void deliver_everything() {
    bool moved = true;
    while (std::exchange(moved, false)) {
      for (auto& [link, queue] : net.links) {
        moved |= !queue.empty();
        deliver_all(link.first, link.second);
      }
    }
  }

  void step(Rank rank, bool busy = false) {
    Member& member = members[rank];
    if (!member.alive) return;
    member.controller->advance(at(now), busy);
    for (Outcome& outcome : member.controller->take_outcomes()) {
      if (auto* decided = std::get_if<Decided>(&outcome)) {
        for (Agreed& agreed : decided->tensors)
          member.agreed.push_back(agreed.submission.request.name);
      } else if (auto* refused = std::get_if<Refused>(&outcome)) {
        member.failed[refused->submission.request.name] = refused->status;
      } else if (auto* aborted = std::get_if<Aborted>(&outcome)) {
        end(member, aborted->status, aborted->pending);
      } else {
        end(member, std::get<Stopped>(outcome).status, std::get<Stopped>(outcome).pending);
      }
    }
    // Lanes are done at once.
    if (!member.controller->open()) member.controller->report_drained();
  }
  static void end(Member& member, const Status& status, std::vector<Submission>& pending) {
    member.ended = status;
    for (Submission& submission : pending) member.failed[submission.request.name] = status;
  }

  // Until nothing moves.
  void settle() {
    bool moved = true;
    while (std::exchange(moved, false)) {
      for (Rank rank = 0; rank < size(); ++rank) step(rank);
      for (auto& [link, queue] : net.links) moved |= !queue.empty();
      deliver_everything();
    }
  }

  Net net;
  std::vector<Member> members;
  double now = 0;
};

using Names = std::vector<std::string>;

// 0 over 1 and 2; 1 over 3 and 4; 4 over 5.
Net tree() { return Net({-1, 0, 0, 1, 1, 4}); }

}  // namespace

TEST_CASE("all ranks agree on one order") {
  for (Net net : {Net::star(1), Net::star(4), tree()}) {
    Party party(net);
    for (Rank rank = 0; rank < party.size(); ++rank)
      party.submit(rank, rank % 2 ? Names{"a", "b", "c"} : Names{"c", "a", "b"});
    party.settle();
    for (const Member& member : party.members) {
      CHECK(member.agreed.size() == 3);
      CHECK(member.agreed == party.members[0].agreed);
    }
  }
}

TEST_CASE("repeating costs bits instead of requests") {
  Party party(Net::star(4), 1000);
  Names names;
  for (int i = 0; i < 500; ++i)
    names.push_back("a.rather.long.name.of.a.tensor." + std::to_string(i));
  party.submit_all(names);
  party.settle();
  const std::size_t first = std::exchange(party.net.bytes, 0);
  party.submit_all(names);
  party.settle();
  CHECK(first > 6 * 500 * 30);
  CHECK(party.net.bytes < 600);
  for (const Member& member : party.members) CHECK(member.agreed.size() == 1000);
}

TEST_CASE("a mismatch reaches all with the same words, and the next one works") {
  Party party(tree());
  for (Rank rank = 0; rank < party.size(); ++rank) party.submit(rank, {"x"}, rank == 4 ? 5 : 4);
  party.settle();
  for (const Member& member : party.members) {
    CHECK(member.failed.at("x").code() == StatusCode::kMismatch);
    CHECK(member.failed.at("x").message() ==
          "allreduce \"x\": ranks 0-3,5 submitted float32 [4], rank 4 float32 [5]");
  }
  party.submit_all({"x"});
  party.settle();
  for (const Member& member : party.members) CHECK(member.agreed == Names{"x"});
}

TEST_CASE("the loss of any rank reaches all others, named") {
  for (Net net : {Net::star(5), tree()}) {
    for (Rank lost = 0; lost < static_cast<Rank>(net.parent.size()); ++lost) {
      Party party(net);
      for (Rank rank = 0; rank < party.size(); ++rank)
        if (rank != lost) party.submit(rank, {"x"});
      party.settle();
      party.lose(lost);
      party.settle();
      for (Rank rank = 0; rank < party.size(); ++rank) {
        if (rank == lost) continue;
        INFO("rank " << rank << ", lost " << lost);
        const Member& member = party.members[rank];
        CHECK(member.ended.code() == StatusCode::kPeerLost);
        CHECK(member.ended.lost_rank() == lost);
        CHECK(member.ended.message().find("rank " + std::to_string(lost) + " (host h)") == 0);
        CHECK(member.failed.at("x").message() == member.ended.message());
        CHECK(!member.controller->open());
      }
    }
  }
}

TEST_CASE("a failure of a lane ends the group with one text") {
  for (const Rank where : {0, 3, 5}) {
    Party party(tree());
    party[where].report_failure(Status::out_of_memory("no memory for 7 bytes"), at(0));
    party[where].report_failure(Status::internal("a second one"), at(0));
    party.settle();
    for (const Member& member : party.members) {
      CHECK(member.ended.code() == StatusCode::kOutOfMemory);
      CHECK(member.ended.message() ==
            "rank " + std::to_string(where) + " (host h): no memory for 7 bytes");
    }
  }
}

TEST_CASE("a lane that lost a peer by number names its host too") {
  Party party(Net::star(3));
  party[1].report_failure(Status::peer_lost(2, "connection reset"), at(0));
  party.settle();
  for (const Member& member : party.members) {
    CHECK(member.ended.lost_rank() == 2);
    CHECK(member.ended.message() == "rank 2 (host h) was lost: connection reset");
  }
}

TEST_CASE("a failure that the root does not answer ends this rank alone, in time") {
  Party party(Net::star(2));
  party[1].report_failure(Status::internal("broken"), at(1));
  CHECK(party[1].next_deadline() == at(6));
  party.now = 5.9;
  party.step(1);
  CHECK(party[1].open());
  party.now = 6;
  party.step(1);
  CHECK(!party[1].open());
  CHECK(party.members[1].ended.message() == "rank 1 (host h): broken");
}

TEST_CASE("leaving in order: what all have is done, the rest fails, and nobody is called lost") {
  for (const Rank leaver : {0, 1, 5}) {
    Party party(tree());
    party.submit_all({"a"});
    for (Rank rank = 0; rank < party.size(); ++rank)
      if (rank != leaver) party.submit(rank, {"b"});
    party.deliver_everything();  // the root knows of it and has not decided
    party[leaver].leave(at(0));
    party.settle();
    const std::string who = "rank " + std::to_string(leaver) + " (host h)";
    for (Rank rank = 0; rank < party.size(); ++rank) {
      Member& member = party.members[rank];
      INFO("rank " << rank << ", leaver " << leaver);
      CHECK(member.ended.code() == StatusCode::kAborted);
      CHECK(member.ended.message().find(who + " has shut down in an orderly way") == 0);
      CHECK(member.agreed == Names{"a"});
      if (rank != leaver) CHECK(member.failed.count("b") == 1);
      CHECK(member.controller->finished(at(0)) == (rank == leaver));
    }
    // The others go when they like; nobody minds.
    party.lose(leaver);
    party.settle();
    for (Rank rank = 0; rank < party.size(); ++rank) {
      if (rank == leaver) continue;
      party[rank].leave(at(0));
      CHECK(party[rank].finished(at(0)));
      CHECK(party.members[rank].ended.code() == StatusCode::kAborted);
    }
  }
}

TEST_CASE("all leave at once") {
  Party party(tree());
  for (Rank rank = 0; rank < party.size(); ++rank) party[rank].leave(at(0));
  party.settle();
  for (Rank rank = 0; rank < party.size(); ++rank) CHECK(party[rank].finished(at(0)));
}

TEST_CASE("leaving does not wait for ever") {
  Party party(Net::star(2));
  party[1].leave(at(1));
  CHECK(!party[1].finished(at(2)));
  CHECK(party[1].next_deadline() == at(31));
  party.now = 31;
  party.step(1);
  CHECK(party[1].finished(at(31)));
  CHECK(party.members[1].ended.code() == StatusCode::kTimedOut);
}

TEST_CASE("a rank that dies while others finish is still noticed") {
  Party party(Net::star(3));
  party[1].leave(at(0));
  party.deliver_all(1, 0);
  party[0].take_outcomes();  // rank 0 has stopped, its lanes are at work
  party.lose(2);
  party.settle();
  CHECK(party.members[0].ended.code() == StatusCode::kPeerLost);
  CHECK(party.members[1].ended.lost_rank() == 2);
}

TEST_CASE("a rank that is done but holds a failed batch says so when the root dies") {
  Party party(Net::star(2));
  party[0].leave(at(0));
  party.deliver_all(0, 1);
  party[1].take_outcomes();
  party[1].report_failure(Status::internal("broken"), at(0));
  party[1].report_drained();
  party.lose(0);
  party.step(1);
  CHECK(party.members[1].ended.lost_rank() == 0);
}

TEST_CASE("after a failure the root stays until all have heard of it") {
  Party party(Net::star(3));
  party[0].report_failure(Status::internal("broken"), at(0));
  party.step(0);
  party[0].leave(at(0));
  CHECK(!party[0].finished(at(0)));
  party.deliver_all(0, 1);
  party.step(1);
  party.deliver_all(1, 0);
  CHECK(!party[0].finished(at(0)));
  party.lose(2);
  CHECK(party[0].finished(at(0)));
  Party other(Net::star(2));
  other[0].report_failure(Status::internal("broken"), at(0));
  other[0].leave(at(0));
  CHECK(!other[0].finished(at(1.9)));
  CHECK(other[0].finished(at(2)));
}

TEST_CASE("decisions wait while the lanes are busy, unless they fill a batch") {
  Party party(Net::star(1));
  party.submit(0, {"a"});
  party.step(0, true);
  CHECK(party[0].holding());
  CHECK(party.members[0].agreed.empty());
  party.submit(0, {"b"});
  party.step(0, true);
  party.step(0, false);
  CHECK(party.members[0].agreed == Names{"a", "b"});
  CHECK(!party[0].holding());
  party.submit(0, {"c"}, 1 << 20);
  party.step(0, true);
  CHECK(party.members[0].agreed.size() == 3);
}

TEST_CASE("what arrives of another epoch is dropped, nonsense is a failure") {
  Party party(Net::star(2));
  ControlEvent event;
  event.kind = ControlEvent::Kind::kMessage;
  event.peer = 0;
  event.bytes = encode(4, Abort{Status::internal("old")});
  party[1].handle(event, at(0));
  party.step(1);
  CHECK(party[1].open());
  event.bytes = {std::byte{1}, std::byte{2}};
  party[1].handle(event, at(0));
  party.settle();
  CHECK(party.members[0].ended.code() == StatusCode::kInternal);
  CHECK(party.members[0].ended.message().find("rank 1 (host h): from rank 0 (host h): ") == 0);
}

TEST_CASE("random orders, delays, changes and a tiny cache") {
  for (unsigned seed = 1; seed <= 24; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Party party(seed % 3 == 0 ? tree() : Net::star(2 + seed % 4), seed % 2 ? 3 : 100);
    const int rounds = 200;
    // Round r of every rank submits name r % 7 once its former round is over; shapes change now and
    // then.
    std::vector<int> next(party.size());
    const auto shape = [&](int round) { return 4 + (round / 50) % 2; };
    const auto name = [](int round) { return "t" + std::to_string(round % 7); };
    const auto in_flight = [&](Rank rank) {
      return next[rank] - static_cast<int>(party.members[rank].agreed.size());
    };
    for (int turn = 0; turn < 100000; ++turn) {
      const Rank rank = static_cast<Rank>(random() % party.size());
      switch (random() % 3) {
        case 0:
          // Up to 7 at once, so no name is twice in flight.
          if (next[rank] < rounds && in_flight(rank) < 7) {
            const bool free = in_flight(rank) == 0 || [&] {
              const Names& done = party.members[rank].agreed;
              return static_cast<int>(std::count(done.begin(), done.end(), name(next[rank]))) ==
                     next[rank] / 7;
            }();
            if (free) {
              party.submit(rank, {name(next[rank])}, shape(next[rank]));
              ++next[rank];
            }
          }
          break;
        case 1:
          party.step(rank, random() % 2);
          break;
        default:
          for (auto& [link, queue] : party.net.links)
            if (link.second == rank && !queue.empty() && random() % 2)
              party.deliver_one(link.first, link.second);
      }
      const bool over = std::all_of(party.members.begin(), party.members.end(), [&](Member& m) {
        return m.agreed.size() == static_cast<std::size_t>(rounds);
      });
      if (over) break;
    }
    for (const Member& member : party.members) {
      CHECK(member.agreed.size() == static_cast<std::size_t>(rounds));
      CHECK(member.agreed == party.members[0].agreed);
      CHECK(member.failed.empty());
    }
  }
}
