#include "test/runtime/rendezvous/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "collectives/base/check.h"
#include "collectives/base/clock.h"

namespace allring {

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments, const Environment& environment) {
  int pipe_ends[2];
  ALLRING_CHECK(pipe2(pipe_ends, O_CLOEXEC) == 0, "a pipe");
  std::vector<std::string> argv = arguments;
  std::vector<std::string> envp;
  for (const char* name : {"PATH", "HOME", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"})
    if (const char* value = std::getenv(name)) envp.push_back(std::string(name) + "=" + value);
  for (const auto& [name, value] : environment) envp.push_back(name + "=" + value);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&pid_, argv[0].c_str(), &actions, &attributes,
                                 pointers(argv).data(), pointers(envp).data());
  ALLRING_CHECK(error == 0, argv[0].c_str());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(pipe_ends[1]);
  output_ = pipe_ends[0];
}

Program::Program(Program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), output_(std::exchange(other.output_, -1)) {}

Program::~Program() {
  if (output_ >= 0) close(output_);
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Program::Outcome Program::finish() {
  Outcome outcome;
  const Deadline deadline = deadline_after(seconds(60));
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::real().now()).count();
    pollfd readable{output_, POLLIN, 0};
    if (left <= 0 || poll(&readable, 1, static_cast<int>(left)) <= 0) {
      outcome.output += "[killed by the test after a minute]\n";
      kill(-pid_, SIGKILL);
      break;
    }
    char buffer[4096];
    const ssize_t got = read(output_, buffer, sizeof(buffer));
    if (got <= 0) break;
    outcome.output.append(buffer, static_cast<std::size_t>(got));
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  kill(-pid_, SIGKILL);
  pid_ = -1;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace allring
