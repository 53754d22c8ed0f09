#include "collectives/transport/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "collectives/transport/memory_limit.h"

namespace allring {
namespace {

Deadline soon() { return deadline_after(seconds(20)); }

TEST_CASE("what one side writes the other reads, after the first has gone") {
  auto [near, far] = socket_pair().value();
  std::shared_ptr<Segment> first = Segment::create(10'000).value();
  CHECK(first->bytes().size() == 12'288);
  CHECK(std::all_of(first->bytes().begin(), first->bytes().end(),
                    [](std::byte byte) { return byte == std::byte{0}; }));
  REQUIRE(send_segment(near.get(), *first, soon()).ok());
  first->bytes()[9'999] = std::byte{42};
  first.reset();
  std::shared_ptr<Segment> second = receive_segment(far.get(), soon()).value();
  CHECK(second->bytes().size() == 12'288);
  CHECK(second->bytes()[9'999] == std::byte{42});
}

TEST_CASE("the descriptor may be closed and does not survive exec") {
  std::shared_ptr<Segment> segment = Segment::create(4096).value();
  CHECK((fcntl(segment->fd(), F_GETFD) & FD_CLOEXEC) != 0);
  segment->close_fd();
  segment->bytes()[4095] = std::byte{1};
  CHECK(segment->fd() == -1);
}

TEST_CASE("the size is sealed, and memory of which it is not is refused") {
  std::shared_ptr<Segment> segment = Segment::create(8192).value();
  CHECK(ftruncate(segment->fd(), 4096) != 0);
  CHECK(ftruncate(segment->fd(), 16384) != 0);
  CHECK(Segment::attach(Fd(dup(segment->fd())), 16384).status().code() ==
        StatusCode::kInvalidArgument);
  Fd open_ended(memfd_create("test", MFD_CLOEXEC));
  REQUIRE(ftruncate(open_ended.get(), 8192) == 0);
  CHECK(Segment::attach(std::move(open_ended), 8192).status().code() ==
        StatusCode::kInvalidArgument);
  CHECK(Segment::attach(Fd(open("/dev/zero", O_RDWR | O_CLOEXEC)), 8192).status().code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("more than there is, is an error that says how much") {
  const Result<std::shared_ptr<Segment>> segment = Segment::create(std::size_t{1} << 50);
  REQUIRE(segment.status().code() == StatusCode::kOutOfMemory);
  CHECK_THAT(segment.status().message(),
             Catch::Contains("1125899906842624 bytes") && Catch::Contains("leaves"));
}

TEST_CASE("a limit on file sizes is an error and not a signal") {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit low = before;
  low.rlim_cur = 1 << 20;
  setrlimit(RLIMIT_FSIZE, &low);
  const Status status = Segment::create(2 << 20).status();
  const bool small_fits = Segment::create(1 << 20).ok();
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(status.code() == StatusCode::kOutOfMemory);
  CHECK_THAT(status.message(), Catch::Contains("ulimit -f"));
  CHECK(small_fits);
}

TEST_CASE("no free descriptor is an error") {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const Fd highest(dup(0));
  rlimit low = before;
  low.rlim_cur = static_cast<rlim_t>(highest.get()) + 1;
  // All numbers below the limit are taken, unless there was a gap, which this fills.
  std::vector<Fd> fill;
  setrlimit(RLIMIT_NOFILE, &low);
  while (true) {
    Fd next(dup(0));
    if (!next) break;
    fill.push_back(std::move(next));
  }
  const Status status = Segment::create(4096).status();
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(status.code() == StatusCode::kOutOfMemory);
}

TEST_CASE("no address space is an error") {
  const pid_t child = fork();
  if (child == 0) {
    // A little room is left for whatever else maps memory, sanitizers for example.
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit low{};
    getrlimit(RLIMIT_AS, &low);
    low.rlim_cur = pages * 4096 + (32 << 20);
    setrlimit(RLIMIT_AS, &low);
    _exit(Segment::create(64 << 20).status().code() == StatusCode::kOutOfMemory ? 0 : 1);
  }
  int exited = -1;
  waitpid(child, &exited, 0);
  CHECK(exited == 0);
}

TEST_CASE("mappings of one size do not lie at multiples of it") {
  constexpr std::size_t kBytes = 2 << 20;
  std::vector<std::shared_ptr<Segment>> segments;
  for (int i = 0; i < 8; ++i) segments.push_back(Segment::create(kBytes).value());
  std::vector<std::uintptr_t> places;
  for (const auto& segment : segments) {
    places.push_back(reinterpret_cast<std::uintptr_t>(segment->bytes().data()));
    CHECK(places.back() % 4096 == 0);
  }
  std::sort(places.begin(), places.end());
  int touching = 0;
  for (std::size_t i = 1; i < places.size(); ++i) touching += places[i] - places[i - 1] == kBytes;
  CHECK(touching == 0);
}

/// A tree of files as /proc and /sys would have them.
class FakeRoot {
 public:
  FakeRoot() {
    std::string path = std::filesystem::temp_directory_path() / "memory_limit_XXXXXX";
    root_ = mkdtemp(path.data());
  }
  ~FakeRoot() { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  const std::string& path() const { return root_; }

 private:
  std::string root_;
};

TEST_CASE("the tightest limit counts") {
  FakeRoot root;
  root.write("/proc/meminfo", "MemTotal: 8000 kB\nMemAvailable:    1000 kB\n");
  CHECK(memory_limit(root.path()).free_bytes == 1'024'000);
  CHECK(memory_limit(root.path()).name == "the machine's free memory");

  SECTION("a group of the second version, and those around it") {
    root.write("/proc/self/cgroup", "0::/jobs/7\n");
    root.write("/sys/fs/cgroup/jobs/7/memory.max", "max\n");
    root.write("/sys/fs/cgroup/jobs/7/memory.current", "900000\n");
    CHECK(memory_limit(root.path()).free_bytes == 1'024'000);
    root.write("/sys/fs/cgroup/jobs/memory.max", "500000\n");
    root.write("/sys/fs/cgroup/jobs/memory.current", "450000\n");
    root.write("/sys/fs/cgroup/jobs/memory.stat", "anon 1\ninactive_file 1000\nactive_file 200\n");
    CHECK(memory_limit(root.path()).free_bytes == 51'200);
    CHECK(memory_limit(root.path()).name == "the memory limit of control group /jobs");
    root.write("/sys/fs/cgroup/jobs/memory.current", "600000\n");
    CHECK(memory_limit(root.path()).free_bytes == 0);
  }
  SECTION("a group of the first version, whose path is the host's") {
    root.write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
    root.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
    root.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n");
    root.write("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 10\n");
    CHECK(memory_limit(root.path()).free_bytes == 100'010);
  }
}

}  // namespace
}  // namespace allring
