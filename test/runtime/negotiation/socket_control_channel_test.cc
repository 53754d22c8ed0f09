// The star of connections: between threads, and with forked processes that end, freeze or leave
// children behind.
#include "runtime/negotiation/socket_control_channel.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <thread>

namespace allring {
namespace {

using Kind = ControlEvent::Kind;

Deadline soon() { return deadline_after(seconds(30)); }

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string text_of(const ControlEvent& event) {
  return std::string(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size());
}

std::unique_ptr<Endpoint> start_endpoint(Rank rank, int size, Endpoint::Reach reach) {
  Endpoint::Settings settings;
  settings.rank = rank;
  settings.size = size;
  settings.hostname = "host" + std::to_string(rank);
  settings.secret = std::string(32, 's');
  settings.reach = reach;
  // TCP is what ranks of different hosts use.
  if (reach != Endpoint::Reach::kUnixOnly) settings.host_key = settings.hostname;
  auto endpoint = Endpoint::start(settings);
  return endpoint.ok() ? std::move(endpoint).value() : nullptr;
}

using Channel = std::unique_ptr<SocketControlChannel>;

Result<Channel> join(Endpoint& endpoint, nanoseconds heartbeat) {
  SocketControlChannel::Settings settings;
  settings.heartbeat_timeout = heartbeat;
  settings.members.resize(endpoint.size());
  std::iota(settings.members.begin(), settings.members.end(), 0);
  return SocketControlChannel::connect(endpoint, settings, soon());
}

// A star whose ranks are threads of this process.
struct Star {
  std::vector<std::unique_ptr<Endpoint>> endpoints;
  std::vector<Channel> channels;

  Star(int size, Endpoint::Reach reach, nanoseconds heartbeat = seconds(60)) : channels(size) {
    std::vector<PeerInfo> infos;
    for (Rank rank = 0; rank < size; ++rank) {
      endpoints.push_back(start_endpoint(rank, size, reach));
      REQUIRE(endpoints.back());
      infos.push_back(endpoints.back()->info());
    }
    for (auto& endpoint : endpoints) endpoint->set_peers(infos);
    std::vector<Status> outcomes(size);
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        auto channel = join(*endpoints[rank], heartbeat);
        outcomes[rank] = channel.status();
        if (channel.ok()) channels[rank] = std::move(channel).value();
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Status& outcome : outcomes) {
      INFO(outcome.to_string());
      REQUIRE(outcome.ok());
    }
  }
};

TEST_CASE("messages of all sizes go both ways in order") {
  const auto reach = GENERATE(Endpoint::Reach::kUnixOnly, Endpoint::Reach::kLoopback);
  constexpr int kSize = 5;
  Star star(kSize, reach);
  CHECK(star.channels[0]->parent() == -1);
  CHECK(star.channels[0]->children().size() == kSize - 1);
  CHECK(star.channels[3]->parent() == 0);
  const std::vector<std::string> texts = {"", "a", std::string(3 << 20, 'x'), "end"};
  std::vector<std::string> failures(kSize);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank] {
      ControlChannel& channel = *star.channels[rank];
      // Rank 0 sends to all before it reads anything, and so does everyone else.
      for (Rank peer = rank == 0 ? 1 : 0; peer < (rank == 0 ? kSize : 1); ++peer)
        for (const std::string& text : texts) channel.send(peer, bytes_of(text));
      std::vector<std::size_t> seen(kSize);
      const std::size_t wanted = texts.size() * (rank == 0 ? kSize - 1 : 1);
      for (std::size_t i = 0; i < wanted; ++i) {
        const ControlEvent event = channel.receive(soon());
        if (event.kind != Kind::kMessage || text_of(event) != texts[seen[event.peer]++])
          failures[rank] = "wrong event";
      }
      // What is queued goes out while its sender receives.
      for (Rank peer = 1; rank == 0 && peer < kSize; ++peer) channel.send(peer, bytes_of("done"));
      if (rank != 0 && text_of(channel.receive(soon())) != "done") failures[rank] = "not done";
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}

TEST_CASE("a queue behind a reader that is late goes out while the sender receives") {
  Star star(2, Endpoint::Reach::kUnixOnly);
  const std::string large(20 << 20, 'y');
  star.channels[0]->send(1, bytes_of(large));
  star.channels[0]->send(1, bytes_of("after"));
  std::string first;
  std::string second;
  std::thread reader([&] {
    first = text_of(star.channels[1]->receive(soon()));
    second = text_of(star.channels[1]->receive(soon()));
    star.channels[1]->send(0, bytes_of("got it"));
  });
  CHECK(text_of(star.channels[0]->receive(soon())) == "got it");
  reader.join();
  CHECK(first == large);
  CHECK(second == "after");
}

TEST_CASE("wakes collapse, wait for the next receive, and a deadline passes on time") {
  Star star(2, Endpoint::Reach::kUnixOnly);
  ControlChannel& channel = *star.channels[1];
  channel.wake();
  channel.wake();
  CHECK(channel.receive(soon()).kind == Kind::kWoken);
  const TimePoint before = Clock::real().now();
  CHECK(channel.receive(before + microseconds(300)).kind == Kind::kDeadline);
  CHECK(Clock::real().now() >= before + microseconds(300));
  CHECK(channel.receive(deadline_after(milliseconds(15))).kind == Kind::kDeadline);
  std::thread waker([&] { channel.wake(); });
  CHECK(channel.receive(kNoDeadline).kind == Kind::kWoken);
  waker.join();
}

TEST_CASE("a channel that closes is a lost peer, after its last words, and once") {
  const auto reach = GENERATE(Endpoint::Reach::kUnixOnly, Endpoint::Reach::kLoopback);
  Star star(3, reach);
  star.channels[2]->send(0, bytes_of("last words"));
  star.channels[0]->send(2, bytes_of("unread"));
  star.channels[2].reset();
  CHECK(text_of(star.channels[0]->receive(soon())) == "last words");
  const ControlEvent lost = star.channels[0]->receive(soon());
  CHECK(lost.kind == Kind::kPeerLost);
  CHECK(lost.peer == 2);
  CHECK(lost.reason.lost_rank() == 2);
  INFO(lost.reason.message());
  CHECK(lost.reason.message().find("rank 2 (host host2, pid " + std::to_string(getpid()) + ")") !=
        std::string::npos);
  star.channels[0]->send(2, bytes_of("to nobody"));
  CHECK(star.channels[0]->receive(deadline_after(milliseconds(5))).kind == Kind::kDeadline);
  star.channels[1]->send(0, bytes_of("still here"));
  CHECK(text_of(star.channels[0]->receive(soon())) == "still here");
}

TEST_CASE("ranks that have nothing to say stay alive, at no cost") {
  Star star(2, Endpoint::Reach::kUnixOnly, milliseconds(200));
  std::vector<ControlEvent> seen(2);
  std::vector<std::thread> threads;
  timespec before{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  for (Rank rank = 0; rank < 2; ++rank)
    threads.emplace_back(
        [&, rank] { seen[rank] = star.channels[rank]->receive(deadline_after(seconds(1))); });
  for (std::thread& thread : threads) thread.join();
  timespec after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  CHECK(seen[0].kind == Kind::kDeadline);
  CHECK(seen[1].kind == Kind::kDeadline);
  const double used = static_cast<double>(after.tv_sec - before.tv_sec) +
                      static_cast<double>(after.tv_nsec - before.tv_nsec) * 1e-9;
  CHECK(used < 0.2);
}

// Rank 1 in a process of its own, which runs `life` and exits.
class Child {
 public:
  Child(nanoseconds heartbeat, const std::function<void(ControlChannel&)>& life) {
    auto root = start_endpoint(0, 2, Endpoint::Reach::kUnixOnly);
    REQUIRE(root);
    int to_parent[2];
    REQUIRE(pipe2(to_parent, O_CLOEXEC) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      // No thread of the parent exists here; its endpoint must be left alone.
      auto endpoint = start_endpoint(1, 2, Endpoint::Reach::kUnixOnly);
      if (!endpoint) _exit(3);
      std::string info;
      endpoint->info().append_to(&info);
      if (write(to_parent[1], info.data(), info.size()) < 0) _exit(3);
      close(to_parent[1]);
      endpoint->set_peers({root->info(), endpoint->info()});
      auto channel = join(*endpoint, heartbeat);
      if (!channel.ok()) _exit(3);
      life(**channel);
      _exit(0);
    }
    close(to_parent[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(to_parent[0], buffer, sizeof(buffer))) > 0;)
      text.append(buffer, static_cast<std::size_t>(got));
    close(to_parent[0]);
    std::string_view view = text;
    auto info = PeerInfo::parse(&view);
    REQUIRE(info.ok());
    root->set_peers({root->info(), *info});
    auto channel_or = join(*root, heartbeat);
    INFO(channel_or.status().to_string());
    REQUIRE(channel_or.ok());
    channel = std::move(channel_or).value();
  }

  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  Channel channel;

 private:
  pid_t pid_ = -1;
};

void answer_until_killed(ControlChannel& channel) {
  for (;;) {
    const ControlEvent event = channel.receive(kNoDeadline);
    if (event.kind == Kind::kPeerLost) return;
    if (event.kind == Kind::kMessage) channel.send(0, event.bytes);
  }
}

TEST_CASE("a killed process is lost at once") {
  Child child(seconds(60), answer_until_killed);
  child.channel->send(1, bytes_of("hello"));
  REQUIRE(text_of(child.channel->receive(soon())) == "hello");
  kill(child.pid(), SIGKILL);
  const ControlEvent lost = child.channel->receive(deadline_after(seconds(10)));
  CHECK(lost.kind == Kind::kPeerLost);
  CHECK(lost.reason.message().find("pid " + std::to_string(child.pid())) != std::string::npos);
}

TEST_CASE("a killed process is lost at once though a process that it forked lives on") {
  Child child(seconds(60), [](ControlChannel& channel) {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      for (;;) pause();
    }
    channel.send(0, std::as_bytes(std::span(&grandchild, 1)));
    answer_until_killed(channel);
  });
  const ControlEvent hello = child.channel->receive(soon());
  REQUIRE(hello.bytes.size() == sizeof(pid_t));
  pid_t grandchild = 0;
  std::memcpy(&grandchild, hello.bytes.data(), sizeof(grandchild));
  kill(child.pid(), SIGKILL);
  const ControlEvent lost = child.channel->receive(deadline_after(seconds(10)));
  kill(grandchild, SIGKILL);
  CHECK(lost.kind == Kind::kPeerLost);
  CHECK(child.channel->receive(deadline_after(milliseconds(5))).kind == Kind::kDeadline);
}

TEST_CASE("a frozen process is lost after the heartbeat's timeout") {
  Child child(seconds(1), answer_until_killed);
  child.channel->send(1, bytes_of("hello"));
  REQUIRE(text_of(child.channel->receive(soon())) == "hello");
  kill(child.pid(), SIGSTOP);
  const TimePoint frozen = Clock::real().now();
  const ControlEvent lost = child.channel->receive(deadline_after(seconds(10)));
  CHECK(lost.kind == Kind::kPeerLost);
  INFO(lost.reason.message());
  CHECK(lost.reason.message().find("has been silent for 1") != std::string::npos);
  CHECK(lost.reason.message().find("rank 1 (host host1, pid " + std::to_string(child.pid())) !=
        std::string::npos);
  CHECK(Clock::real().now() - frozen < seconds(3));
}

TEST_CASE("a process that was frozen itself accuses nobody when it goes on") {
  // The child answers a message only if it has not lost its peer.
  Child child(seconds(1), answer_until_killed);
  kill(child.pid(), SIGSTOP);
  int status = 0;
  REQUIRE(waitpid(child.pid(), &status, WUNTRACED) == child.pid());
  // Nothing is received here for longer than the timeout either: both sides were away.
  Clock::real().sleep_until(deadline_after(milliseconds(1500)));
  kill(child.pid(), SIGCONT);
  child.channel->send(1, bytes_of("still friends?"));
  CHECK(text_of(child.channel->receive(soon())) == "still friends?");
}

TEST_CASE("nothing is left behind") {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = descriptors();
  for (int i = 0; i < 10; ++i) Star star(3, Endpoint::Reach::kUnixOnly);
  CHECK(descriptors() == before);
}

}  // namespace
}  // namespace allring
