#include "collectives/base/check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>

namespace allring {
namespace {

TEST_CASE("a broken invariant says where and what, and aborts, in every build") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::signal(SIGABRT, SIG_DFL);
    ALLRING_CHECK(1 + 1 == 3, "sums are sums");
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t size; (size = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGABRT);
  REQUIRE(text.find("check_test.cc:") != std::string::npos);
  REQUIRE(text.find("sums are sums (1 + 1 == 3)") != std::string::npos);
}

TEST_CASE("a check that holds is nothing but a statement") {
  if (true)
    ALLRING_CHECK(true, "holds");
  else
    FAIL("the macro must not capture this else");
  SUCCEED();
}

}  // namespace
}  // namespace allring
