#include "launcher/backends/agent_starter.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace allring {
namespace {

/// What `command` prints when sh runs it, as a login shell would.
std::string run(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  ::pclose(pipe);
  return text;
}

std::string folder() {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string path = std::string(base != nullptr ? base : "/tmp") + "/starter XXXXXX";
  REQUIRE(::mkdtemp(path.data()) != nullptr);
  return path;
}

std::string program(const std::string& path) {
  std::ofstream(path) << "#!/bin/sh\necho \"$0\" \"$@\"\n";
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  return path;
}

TEST_CASE("the remote command runs hvdrun whatever its path holds") {
  const std::string path = program(folder() + "/it's $HOME \"x\"");
  CHECK(run(remote_agent_command(path, true)) == path + " --agent\n");
  CHECK(run(remote_agent_command(path, false)) == path + " --agent\n");
}

TEST_CASE("the remote command looks on PATH, and says when there is no hvdrun") {
  const std::string bin = folder();
  const std::string path = program(bin + "/hvdrun");
  const std::string with_path = "PATH='" + bin + "':$PATH; export PATH; ";
  CHECK(run(with_path + remote_agent_command("/no/such", true)) == path + " --agent\n");
  CHECK(run(with_path + remote_agent_command("/no/such", false)) == "\nallring-agent-missing\n");
  CHECK(run("PATH=/bin; " + remote_agent_command("/no/such", true)) == "\nallring-agent-missing\n");
}

TEST_CASE("ssh's arguments") {
  const std::string bin = folder();
  program(bin + "/ssh");
  const Host host{"me", "fd00::1", 2, 0, false};
  const SshOptions options{2222, "key file", {"-4", "-o", "A=b"}, "/opt/hvdrun"};
  Result<AgentStarter> starter = ssh_starter(host, options, "/no:" + bin);
  REQUIRE(starter.ok());
  CHECK(starter->program == bin + "/ssh");
  CHECK(starter->argv ==
        std::vector<std::string>{"ssh",     "-4",
                                 "-o",      "A=b",
                                 "-p",      "2222",
                                 "-i",      "key file",
                                 "-T",      "-x",
                                 "-o",      "BatchMode=yes",
                                 "-o",      "StrictHostKeyChecking=accept-new",
                                 "-o",      "ServerAliveInterval=10",
                                 "-o",      "ServerAliveCountMax=3",
                                 "-l",      "me",
                                 "fd00::1", remote_agent_command("/opt/hvdrun", false)});
  CHECK(starter->by_hand == "ssh -4 -o A=b -p 2222 -i key file me@fd00::1");
  CHECK_THAT(ssh_starter(host, options, "/no").status().message(),
             Catch::Contains("openssh-client"));
}

TEST_CASE("ssh's words are explained in one line") {
  const Host host{"", "h1", 2, 0, false};
  auto explained = [&host](const char* words) {
    return explain_failed_start(host, "ssh h1", words, 255 << 8);
  };
  const Status unknown =
      explained("ssh: Could not resolve hostname h1: Name or service not known\r\n");
  CHECK(unknown.code() == StatusCode::kInvalidArgument);
  CHECK_THAT(unknown.message(), Catch::StartsWith("host h1: ssh: Could not resolve"));
  const Status refused = explained("Warning: x\nssh: connect to host h1 port 22: Refused\r\n\n");
  CHECK(refused.code() == StatusCode::kAborted);
  CHECK(refused.message() == "host h1: ssh: connect to host h1 port 22: Refused; try: ssh h1");
  CHECK(explained("").message() == "host h1: ssh ended with exit code 255; try: ssh h1");
  CHECK_THAT(explained("me@h1: Permission denied (publickey).\n").message(),
             Catch::Contains("without a password"));
  CHECK_THAT(explain_missing_hvdrun(host, "/x").message(), Catch::Contains("--remote-hvdrun"));
  CHECK_THAT(explain_missing_hvdrun(host, "").message(), Catch::Contains("--remote-hvdrun PATH"));
}

}  // namespace
}  // namespace allring
