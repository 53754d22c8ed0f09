#include "benchmarks/bench/pair.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/bench/timing.h"

namespace allring::bench {

namespace {

constexpr double kPatienceUs = 60e6;
constexpr int kSpins = 2000;

void pin(int side) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  int skip = side;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

Status from_errno(const char* what) {
  return Status::from_errno(what, errno, StatusCode::kInternal);
}

}  // namespace

Pair::Pair(std::byte* shared, std::size_t bytes, int side)
    : shared_(shared), bytes_(bytes), side_(side) {}

Pair::~Pair() { munmap(shared_, kHeadBytes + bytes_); }

Status Pair::meet() {
  ++met_;
  head().arrived[side_][0].store(met_, std::memory_order_release);
  const auto& others = head().arrived[1 - side_][0];
  const double start = now_us();
  for (std::int64_t i = 0; others.load(std::memory_order_acquire) < met_; ++i) {
    if (i < kSpins) continue;
    sched_yield();
    if (i % 1024 == 0 && now_us() - start > kPatienceUs)
      return Status::timed_out("the other process of the pair does not come");
  }
  return {};
}

Result<double> Pair::other(double mine) {
  head().value[side_][0] = mine;
  ALLRING_RETURN_IF_ERROR(meet());
  const double others = head().value[1 - side_][0];
  ALLRING_RETURN_IF_ERROR(meet());
  return others;
}

Result<double> Pair::greater(double mine) {
  ALLRING_ASSIGN_OR_RETURN(const double others, other(mine));
  return std::max(mine, others);
}

Result<double> Pair::sum(double mine) {
  ALLRING_ASSIGN_OR_RETURN(const double others, other(mine));
  return mine + others;
}

Status run_as_pair(std::size_t bytes, const std::function<Status(Pair&)>& both) {
  void* const shared = mmap(nullptr, Pair::kHeadBytes + bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (shared == MAP_FAILED) return from_errno("mmap");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return from_errno("fork");
  const int side = child == 0 ? 1 : 0;
  pin(side);
  Pair pair(static_cast<std::byte*>(shared), bytes, side);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const Status status = both(pair);
    if (!status.ok()) std::fprintf(stderr, "hvdbench: %s\n", status.to_string().c_str());
    _exit(status.ok() ? 0 : 1);
  }
  const Status status = both(pair);
  if (!status.ok()) kill(child, SIGKILL);
  int how = 0;
  waitpid(child, &how, 0);
  if (status.ok() && how != 0) return Status::internal("the second process failed");
  return status;
}

Result<std::unique_ptr<Pair>> pair_of_ranks(Contestant& ranks, std::size_t bytes) {
  const std::size_t whole = Pair::kHeadBytes + bytes;
  const int rank = ranks.rank();
  int descriptor = -1;
  // Process, descriptor, and by its inode number that it is the same file: the number of a process
  // may mean another one on another host.
  std::vector<double> where = {-1, -1, -1};
  if (rank == 0 && ranks.size() > 1) {
    descriptor = memfd_create("hvdbench", MFD_CLOEXEC);
    struct stat about {};
    if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(whole)) == 0 &&
        fstat(descriptor, &about) == 0)
      where = {static_cast<double>(getpid()), static_cast<double>(descriptor),
               static_cast<double>(about.st_ino)};
  }
  ALLRING_RETURN_IF_ERROR(ranks.max_over_ranks(where));
  if (rank == 1 && where[0] > 0) {
    const std::string path = "/proc/" + std::to_string(static_cast<long>(where[0])) + "/fd/" +
                             std::to_string(static_cast<int>(where[1]));
    descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat about {};
    if (descriptor >= 0 &&
        (fstat(descriptor, &about) != 0 || static_cast<double>(about.st_ino) != where[2] ||
         static_cast<std::size_t>(about.st_size) != whole)) {
      close(descriptor);
      descriptor = -1;
    }
  }
  void* shared = MAP_FAILED;
  if (rank < 2 && descriptor >= 0)
    shared = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  std::vector<double> failed = {rank < 2 && shared == MAP_FAILED ? 1.0 : 0.0};
  ALLRING_RETURN_IF_ERROR(ranks.max_over_ranks(failed));
  if (descriptor >= 0) close(descriptor);
  if (failed[0] > 0 || ranks.size() < 2 || rank > 1) {
    if (shared != MAP_FAILED) munmap(shared, whole);
    return std::unique_ptr<Pair>();
  }
  return std::make_unique<Pair>(static_cast<std::byte*>(shared), bytes, rank);
}

}  // namespace allring::bench
