#include "benchmarks/bench/probes.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "benchmarks/bench/memory.h"
#include "benchmarks/bench/timing.h"
#include "collectives/kernels/reduce.h"

namespace allring::bench {

namespace {

constexpr int kRepeats = 15;
constexpr std::size_t kLine = 64;

double median(std::vector<double> values) { return summarise(values).median_us; }

double gbps(std::size_t bytes, double us) { return static_cast<double>(bytes) / us / 1e3; }

/// Both do `work` on `bytes` at the same time; the rate of both together.
template <typename Work>
Result<double> rate_of_both(Pair& pair, std::size_t bytes, const Work& work) {
  // Long enough for the clock and for the other to have begun.
  const std::size_t calls = std::max<std::size_t>(1, (std::size_t{4} << 20) / bytes);
  std::vector<double> rates;
  work();
  for (int i = 0; i < kRepeats; ++i) {
    ALLRING_RETURN_IF_ERROR(pair.meet());
    const double start = now_us();
    for (std::size_t k = 0; k < calls; ++k) work();
    rates.push_back(gbps(bytes * calls, now_us() - start));
  }
  return pair.sum(median(rates));
}

/// A word of each line: enough to fetch it, and no more for the processor to do.
void read_lines(const std::byte* memory, std::size_t bytes) {
  std::uint64_t sums[4] = {};
  const auto* words = reinterpret_cast<const std::uint64_t*>(memory);
  constexpr std::size_t kStep = kLine / sizeof(std::uint64_t);
  for (std::size_t i = 0; i + 4 * kStep <= bytes / sizeof(std::uint64_t); i += 4 * kStep) {
    for (std::size_t k = 0; k < 4; ++k) sums[k] += words[i + k * kStep];
  }
  volatile std::uint64_t sink = sums[0] + sums[1] + sums[2] + sums[3];
  (void)sink;
}

void write_lines(std::byte* memory, std::size_t bytes, int value) {
  std::memset(memory, value, bytes);
}

/// One side does `first`, then the other does `then`, which is timed; sides change.
template <typename First, typename Then>
Result<double> rate_in_turns(Pair& pair, std::size_t bytes, const First& first, const Then& then) {
  std::vector<double> rates;
  for (int turn = 0; turn < 2 * (kRepeats + 1); ++turn) {
    const bool begins = turn % 2 == pair.side();
    if (begins) first(turn);
    ALLRING_RETURN_IF_ERROR(pair.meet());
    if (!begins) {
      const double start = now_us();
      then(turn);
      const double us = now_us() - start;
      if (turn >= 2) rates.push_back(gbps(bytes, us));
    }
    ALLRING_RETURN_IF_ERROR(pair.meet());
  }
  ALLRING_ASSIGN_OR_RETURN(const double both, pair.sum(median(rates)));
  return both / 2;
}

/// A TCP connection over loopback between the two; -1 and errno if it fails.
class Stream {
 public:
  explicit Stream(Pair& pair) { descriptor_ = pair.side() == 0 ? accept_one(pair) : join(pair); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  bool ok() const { return descriptor_ >= 0; }
  bool send_all(const std::byte* data, std::size_t bytes) const {
    return move_all(bytes, [&](std::size_t done) {
      return send(descriptor_, data + done, bytes - done, MSG_NOSIGNAL);
    });
  }
  bool receive_all(std::byte* data, std::size_t bytes) const {
    return move_all(
        bytes, [&](std::size_t done) { return recv(descriptor_, data + done, bytes - done, 0); });
  }

 private:
  template <typename Move>
  static bool move_all(std::size_t bytes, const Move& move) {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t moved = move(done);
      if (moved == 0 || (moved < 0 && errno != EINTR)) return false;
      if (moved > 0) done += static_cast<std::size_t>(moved);
    }
    return true;
  }
  static int no_delay(int descriptor) {
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return descriptor;
  }
  static int accept_one(Pair& pair) {
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    const bool listens =
        bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
        listen(listening, 1) == 0 &&
        getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length) == 0;
    pair.head().word.store(listens ? ntohs(address.sin_port) : 0);
    if (!pair.meet().ok() || !listens) return -1;
    // The other side may have failed to connect.
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    const int descriptor = accept(listening, nullptr, nullptr);
    close(listening);
    return no_delay(descriptor);
  }
  static int join(Pair& pair) {
    if (!pair.meet().ok()) return -1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(pair.head().word.load()));
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return -1;
    return no_delay(descriptor);
  }

  int descriptor_ = -1;
};

Status tcp_failed() { return Status::from_errno("TCP over loopback", errno); }

}  // namespace

Result<double> copy_rate(Pair& pair, std::size_t bytes) {
  Memory from(bytes);
  Memory to(bytes);
  return rate_of_both(pair, bytes, [&] {
    std::memcpy(to.data(), from.data(), bytes);
    asm volatile("" ::"r"(to.data()) : "memory");  // the copy is not dead
  });
}

Result<double> add_rate(Pair& pair, std::size_t bytes) {
  Memory a(bytes);
  Memory b(bytes);
  return rate_of_both(pair, bytes,
                      [&] { reduce2(a.data(), a.data(), b.data(), bytes / sizeof(float), {}); });
}

Result<double> line_one_way_ns(Pair& pair) {
  constexpr std::uint32_t kRounds = 400;
  constexpr int kSpins = 10000;
  std::atomic<std::uint32_t>& word = pair.head().word;
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    word.store(0);
    ALLRING_RETURN_IF_ERROR(pair.meet());
    const double start = now_us();
    // 0 writes odd numbers, 1 even ones.
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      const std::uint32_t mine = 2 * round + (pair.side() == 0 ? 1 : 2);
      int spins = 0;
      while (word.load(std::memory_order_acquire) != mine - 1) {
        if (++spins > kSpins) sched_yield();  // the other may need this core
      }
      word.store(mine, std::memory_order_release);
    }
    times.push_back((now_us() - start) * 1e3 / (2.0 * kRounds));
    ALLRING_RETURN_IF_ERROR(pair.meet());
  }
  return pair.greater(median(times));
}

Result<double> read_rate(Pair& pair, std::size_t bytes) {
  return rate_in_turns(
      pair, bytes, [&](int turn) { write_lines(pair.memory(), bytes, turn); },
      [&](int) { read_lines(pair.memory(), bytes); });
}

Result<double> overwrite_written_rate(Pair& pair, std::size_t bytes) {
  return rate_in_turns(
      pair, bytes, [&](int turn) { write_lines(pair.memory(), bytes, turn); },
      [&](int turn) { write_lines(pair.memory(), bytes, turn + 1); });
}

Result<double> overwrite_read_rate(Pair& pair, std::size_t bytes) {
  std::vector<double> rates;
  for (int turn = 0; turn < 2 * (kRepeats + 1); ++turn) {
    const bool owner = turn % 2 == pair.side();
    if (owner) write_lines(pair.memory(), bytes, turn);
    ALLRING_RETURN_IF_ERROR(pair.meet());
    if (!owner) read_lines(pair.memory(), bytes);
    ALLRING_RETURN_IF_ERROR(pair.meet());
    if (owner) {
      const double start = now_us();
      write_lines(pair.memory(), bytes, turn + 1);
      const double us = now_us() - start;
      if (turn >= 2) rates.push_back(gbps(bytes, us));
    }
    ALLRING_RETURN_IF_ERROR(pair.meet());
  }
  ALLRING_ASSIGN_OR_RETURN(const double both, pair.sum(median(rates)));
  return both / 2;
}

Result<double> wake_up_us(Pair& pair) {
  std::atomic<std::uint32_t>& word = pair.head().word;
  auto* const futex = reinterpret_cast<std::uint32_t*>(&word);
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    word.store(0);
    ALLRING_RETURN_IF_ERROR(pair.meet());
    double clock = 0;
    if (pair.side() == 0) {
      while (word.load(std::memory_order_acquire) == 0)
        syscall(SYS_futex, futex, FUTEX_WAIT, 0, nullptr, nullptr, 0);
      clock = now_us();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // so that the other sleeps
      clock = -now_us();
      word.store(1, std::memory_order_release);
      syscall(SYS_futex, futex, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
    ALLRING_ASSIGN_OR_RETURN(const double us, pair.sum(clock));  // one clock for both
    times.push_back(us);
  }
  return median(times);
}

Result<double> tcp_rate(Pair& pair) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  const Stream stream(pair);
  if (!stream.ok()) return tcp_failed();
  Memory memory(kBytes);
  std::vector<double> rates;
  for (int i = 0; i < kRepeats; ++i) {
    ALLRING_RETURN_IF_ERROR(pair.meet());
    const double start = now_us();
    const bool moved = pair.side() == 0 ? stream.send_all(memory.data(), kBytes)
                                        : stream.receive_all(memory.data(), kBytes);
    if (!moved) return tcp_failed();
    ALLRING_ASSIGN_OR_RETURN(const double us, pair.greater(now_us() - start));
    rates.push_back(gbps(kBytes, us));
  }
  return pair.greater(median(rates));
}

Result<double> tcp_one_way_us(Pair& pair) {
  constexpr int kRounds = 200;
  const Stream stream(pair);
  if (!stream.ok()) return tcp_failed();
  std::byte word[8] = {};
  std::vector<double> times;
  for (int i = 0; i < kRepeats; ++i) {
    ALLRING_RETURN_IF_ERROR(pair.meet());
    const double start = now_us();
    for (int round = 0; round < kRounds; ++round) {
      const bool ok = pair.side() == 0 ? stream.send_all(word, 8) && stream.receive_all(word, 8)
                                       : stream.receive_all(word, 8) && stream.send_all(word, 8);
      if (!ok) return tcp_failed();
    }
    times.push_back((now_us() - start) / (2.0 * kRounds));
  }
  return pair.greater(median(times));
}

Result<double> peer_memory_gbps(Contestant& ranks) {
  constexpr std::size_t kBytes = 512 << 10;
  ALLRING_ASSIGN_OR_RETURN(const std::unique_ptr<Pair> pair, pair_of_ranks(ranks, kBytes));
  double rate = 0;
  if (pair) {
    ALLRING_ASSIGN_OR_RETURN(rate, read_rate(*pair, kBytes));
  }
  ALLRING_RETURN_IF_ERROR(ranks.barrier());
  return rate;
}

}  // namespace allring::bench
