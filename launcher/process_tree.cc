#include "launcher/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

namespace allring {

namespace {

/// Reads a process's parent from /proc/PID/stat. False if it is gone or a zombie; one whose first
/// thread alone has ended looks like a zombie and is none.
bool read_parent(const char* pid, pid_t* parent) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%s/stat", pid);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[512];
  const ssize_t got = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (got <= 0) return false;
  text[got] = '\0';
  // The name, in parentheses, may hold anything.
  const char* end_of_name = std::strrchr(text, ')');
  char state;
  long threads;
  return end_of_name != nullptr &&
         std::sscanf(end_of_name + 1,
                     " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld",
                     &state, parent, &threads) == 3 &&
         ((state != 'Z' && state != 'X') || threads > 1);
}

void for_each_process(const std::function<void(const char* pid)>& visit) {
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return;
  while (const dirent* entry = ::readdir(proc)) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') visit(entry->d_name);
  }
  ::closedir(proc);
}

/// Parent -> children, for every living process.
std::multimap<pid_t, pid_t> read_children() {
  std::multimap<pid_t, pid_t> children;
  for_each_process([&children](const char* pid) {
    pid_t parent;
    if (read_parent(pid, &parent)) children.emplace(parent, std::atoi(pid));
  });
  return children;
}

bool has_in_environment(const char* pid, const std::string& entry) {
  std::ifstream file("/proc/" + std::string(pid) + "/environ", std::ios::binary);
  for (std::string each; std::getline(file, each, '\0');) {
    if (each == entry) return true;
  }
  return false;
}

std::vector<pid_t> descendants_but(pid_t root, const std::vector<pid_t>& spare) {
  const auto children = read_children();
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) {
      if (std::find(spare.begin(), spare.end(), child->second) == spare.end())
        found.push_back(child->second);
    }
  }
  found.erase(found.begin());
  return found;
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> descendants(pid_t root) { return descendants_but(root, {}); }

void signal_descendants(pid_t root, int signal) {
  for (pid_t pid : descendants(root)) ::kill(pid, signal);
}

bool reap_children(const Reaped& reaped) {
  while (true) {
    int wait_status;
    const pid_t pid = ::waitpid(-1, &wait_status, WNOHANG);
    if (pid == 0) return true;
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return false;
    reaped(pid, wait_status);
  }
}

bool end_descendants(const std::vector<pid_t>& spare, Deadline deadline, const Reaped& reaped) {
  while (true) {
    const std::vector<pid_t> left = descendants_but(::getpid(), spare);
    for (pid_t pid : left) ::kill(pid, SIGKILL);
    reap_children(reaped);
    if (left.empty()) return true;
    if (Clock::real().now() >= deadline) return false;
    // Their end takes the kernel a moment; orphans among them then become ours.
    Clock::real().sleep_until(Clock::real().now() + milliseconds(1));
  }
}

bool end_processes_with(const std::string& entry, Deadline deadline) {
  while (true) {
    bool found = false;
    for_each_process([&](const char* pid) {
      pid_t parent;
      if (!has_in_environment(pid, entry) || !read_parent(pid, &parent)) return;
      if (std::atoi(pid) == ::getpid()) return;
      found = true;
      ::kill(std::atoi(pid), SIGKILL);
    });
    if (!found) return true;
    if (Clock::real().now() >= deadline) return false;
    Clock::real().sleep_until(Clock::real().now() + milliseconds(1));
  }
}

}  // namespace allring
