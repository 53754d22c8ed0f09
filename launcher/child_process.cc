#include "launcher/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "launcher/file_descriptor.h"

namespace allring {

namespace {

enum class Step : int { kPrepare, kFolder, kExec };

/// What a child that cannot run its program writes to its parent.
struct ChildFailure {
  Step step;
  int error;
};

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& each : strings) result.push_back(const_cast<char*>(each.c_str()));
  result.push_back(nullptr);
  return result;
}

// From here to exec only async-signal-safe calls: other threads of the parent may hold any lock.

[[noreturn]] void fail_in_child(int report_fd, Step step) {
  const ChildFailure failure{step, errno};
  [[maybe_unused]] const ssize_t written = ::write(report_fd, &failure, sizeof failure);
  ::_exit(127);
}

void close_from(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  const long limit = ::sysconf(_SC_OPEN_MAX);  // a kernel before 5.9
  for (long fd = first; fd < (limit > 0 ? limit : 65536); ++fd) ::close(static_cast<int>(fd));
}

[[noreturn]] void run_child(const ChildCommand& command, char* const* argv,
                            char* const* environment, pid_t parent, int report_fd) {
  const bool session = command.group == ChildCommand::Group::kSession;
  if (session ? ::setsid() < 0 : ::setpgid(0, 0) != 0) fail_in_child(report_fd, Step::kPrepare);
  if (command.death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, command.death_signal) != 0)
      fail_in_child(report_fd, Step::kPrepare);
    if (::getppid() != parent) ::_exit(127);  // it ended before we asked
  }

  // The sources may be 0, 1 or 2 themselves, so they first move out of the way.
  int fds[3] = {command.stdin_fd, command.stdout_fd, command.stderr_fd};
  for (int& fd : fds) {
    if (fd < 0) continue;
    fd = ::fcntl(fd, F_DUPFD, 10);
    if (fd < 0) fail_in_child(report_fd, Step::kPrepare);
  }
  report_fd = ::fcntl(report_fd, F_DUPFD, 10);
  for (int i = 0; i < 3; ++i) {
    if (fds[i] >= 0 && ::dup2(fds[i], i) < 0) fail_in_child(report_fd, Step::kPrepare);
  }
  if (::dup2(report_fd, 3) < 0) fail_in_child(report_fd, Step::kPrepare);
  report_fd = 3;
  ::fcntl(report_fd, F_SETFD, FD_CLOEXEC);
  close_from(4);

  if (!command.working_directory.empty() && ::chdir(command.working_directory.c_str()) != 0)
    fail_in_child(report_fd, Step::kFolder);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(command.program.c_str(), argv, environment);
  fail_in_child(report_fd, Step::kExec);
}

std::string absolute(const std::string& path, const std::string& folder) {
  if (path.empty() || path[0] == '/' || folder.empty()) return path;
  return folder + "/" + path;
}

Status explain(const ChildCommand& command, const ChildFailure& failure) {
  switch (failure.step) {
    case Step::kFolder:
      return Status::from_errno("cannot enter the folder " + command.working_directory,
                                failure.error, StatusCode::kInvalidArgument);
    case Step::kExec:
      if (failure.error == ENOENT &&
          ::access(absolute(command.program, command.working_directory).c_str(), F_OK) == 0)
        return Status::invalid_argument("cannot run " + command.program +
                                        ": the program that its #! line names does not exist");
      if (failure.error == ENOEXEC)
        return Status::invalid_argument("cannot run " + command.program +
                                        ": neither a program nor a script that begins with #!");
      return Status::from_errno("cannot run " + command.program, failure.error,
                                StatusCode::kInvalidArgument);
    case Step::kPrepare:
      break;
  }
  return Status::from_errno("cannot prepare a process for " + command.program, failure.error);
}

bool is_executable_file(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

Status not_runnable(const std::string& name, const std::string& where) {
  struct stat info;
  if (::stat(where.c_str(), &info) != 0)
    return Status::invalid_argument("command not found: " + name + ": " + std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return Status::invalid_argument(name + " is a folder, not a command");
  const bool python = name.size() > 3 && name.compare(name.size() - 3, 3, ".py") == 0;
  return Status::invalid_argument(
      name + " is not executable; " +
      (python ? "run it as: python " + name : "make it so with: chmod +x " + name));
}

}  // namespace

Result<pid_t> start_child(const ChildCommand& command) {
  const std::vector<char*> argv = c_strings(command.argv);
  const std::vector<char*> environment = c_strings(command.environment);
  ALLRING_ASSIGN_OR_RETURN(Pipe report, make_pipe());

  // No signal may reach a handler of ours in the child before it has its own program.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) run_child(command, argv.data(), environment.data(), parent, report.write_end.get());
  const int fork_error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    // EAGAIN is the limit on processes.
    return Status::from_errno("cannot start a process for " + command.program,
                              fork_error == EAGAIN ? ENFILE : fork_error)
        .with_prefix(fork_error == EAGAIN ? "limit on processes (ulimit -u) reached: " : "");
  }
  report.write_end.reset();

  ChildFailure failure;
  ssize_t got;
  do {
    got = ::read(report.read_end.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof failure) return pid;
  int wait_status;
  while (::waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  return explain(command, failure);
}

Result<std::string> find_program(const std::string& name, std::string_view path,
                                 const std::string& folder) {
  if (name.empty()) return Status::invalid_argument("command not found: the name is empty");
  if (name.find('/') != std::string::npos) {
    const std::string where = absolute(name, folder);
    if (!is_executable_file(where)) return not_runnable(name, where);
    return name;
  }
  std::string_view rest = path.empty() ? std::string_view("/usr/local/bin:/usr/bin:/bin") : path;
  while (true) {
    const std::size_t colon = rest.find(':');
    const std::string entry(rest.substr(0, colon));
    const std::string candidate = (entry.empty() ? "." : entry) + "/" + name;
    if (is_executable_file(absolute(candidate, folder))) return candidate;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  const std::string here = absolute(name, folder);
  struct stat info;
  if (::stat(here.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    if (is_executable_file(here))
      return Status::invalid_argument("command not found: " + name +
                                      " is not on PATH; did you mean ./" + name + "?");
    return not_runnable(name, here);
  }
  return Status::invalid_argument("command not found: " + name +
                                  " is in no folder of PATH; give its full path");
}

std::string describe_wait_status(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return "exit code " + std::to_string(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  const char* name = ::strsignal(signal);
  return "signal " + std::to_string(signal) + " (" + (name != nullptr ? name : "unknown") +
         (WCOREDUMP(wait_status) ? ", core dumped)" : ")");
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace allring
