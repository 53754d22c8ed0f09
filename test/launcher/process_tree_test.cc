#include "launcher/process_tree.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>

#include "launcher/child_process.h"
#include "launcher/file_descriptor.h"

namespace allring {
namespace {

ChildCommand shell(const std::string& script, int stdout_fd = -1) {
  ChildCommand command;
  command.program = "/bin/sh";
  command.argv = {"sh", "-c", script};
  command.environment = {"PATH=/usr/bin:/bin", "TREE_TEST=yes"};
  command.stdout_fd = stdout_fd;
  return command;
}

/// Starts a script and waits for the line that it prints.
pid_t start_and_wait(const std::string& script) {
  Pipe pipe = std::move(*make_pipe());
  Result<pid_t> pid = start_child(shell(script, pipe.write_end.get()));
  REQUIRE(pid.ok());
  char line[64];
  REQUIRE(::read(pipe.read_end.get(), line, sizeof line) > 0);
  return *pid;
}

TEST_CASE("everything below a process is ended, orphans and stubborn ones too") {
  adopt_orphans();
  start_and_wait("trap '' TERM; (setsid sh -c 'sleep 1000 & echo up; sleep 1000' &); sleep 1000");
  CHECK(descendants(::getpid()).size() >= 4);
  int reaped = 0;
  CHECK(end_descendants({}, deadline_after(seconds(20)), [&](pid_t, int) { ++reaped; }));
  CHECK(reaped >= 4);
  CHECK(descendants(::getpid()).empty());
  CHECK((::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
}

TEST_CASE("the spared stay, with what is below them") {
  adopt_orphans();
  const pid_t spared = start_and_wait("sleep 1000 & echo up; wait");
  start_and_wait("echo up; exec sleep 1000");
  CHECK(end_descendants({spared}, deadline_after(seconds(20)), [](pid_t, int) {}));
  CHECK(descendants(::getpid()).size() == 2);
  CHECK(end_descendants({}, deadline_after(seconds(20)), [](pid_t, int) {}));
}

TEST_CASE("signals reach descendants of descendants") {
  adopt_orphans();
  start_and_wait("(trap 'exit 7' USR1; echo up; while :; do sleep 0.05; done) & wait; exit $?");
  signal_descendants(::getpid(), SIGUSR1);
  CHECK(end_descendants({}, deadline_after(seconds(20)), [](pid_t, int) {}));
}

TEST_CASE("processes are found by an entry of their environment") {
  adopt_orphans();
  start_and_wait("(setsid sleep 1000 &); echo up; exec sleep 1000");
  CHECK(end_processes_with("TREE_TEST=y", deadline_after(seconds(20))));
  CHECK(descendants(::getpid()).size() == 2);
  CHECK(end_processes_with("TREE_TEST=yes", deadline_after(seconds(20))));
  CHECK(descendants(::getpid()).empty());
  reap_children([](pid_t, int) {});
}

TEST_CASE("a program that cannot be run is known at once") {
  ChildCommand command = shell("");
  command.program = "/no/such";
  CHECK_THAT(start_child(command).status().message(), Catch::Contains("/no/such"));
  command = shell("");
  command.working_directory = "/no/folder";
  CHECK_THAT(start_child(command).status().message(), Catch::Contains("/no/folder"));
  command = shell("");
  command.environment.push_back("LONG=" + std::string(3 << 20, 'x'));
  CHECK_THAT(start_child(command).status().message(), Catch::Contains("too long"));
}

TEST_CASE("wait statuses in words") {
  CHECK(describe_wait_status(3 << 8) == "exit code 3");
  CHECK(describe_wait_status(SIGKILL) == "signal 9 (Killed)");
  CHECK(exit_code_of(3 << 8) == 3);
  CHECK(exit_code_of(SIGKILL) == 137);
}

}  // namespace
}  // namespace allring
