#include "collectives/base/thread.h"

#include <pthread.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <future>
#include <string>

namespace allring {
namespace {

TEST_CASE("a thread has its name and leaves signals to the program's own threads") {
  sigset_t blocked;
  std::promise<void> seen;
  std::thread thread = start_thread("allring-lane-0", [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    seen.get_future().wait();
  });
  char name[16] = "";
  pthread_getname_np(thread.native_handle(), name, sizeof(name));
  seen.set_value();
  thread.join();
  REQUIRE(std::string(name) == "allring-lane-0");
  REQUIRE(sigismember(&blocked, SIGINT) == 1);
  REQUIRE(sigismember(&blocked, SIGTERM) == 1);
  // The caller's own are as before.
  sigset_t mine;
  REQUIRE(pthread_sigmask(SIG_SETMASK, nullptr, &mine) == 0);
  REQUIRE(sigismember(&mine, SIGINT) == 0);
}

}  // namespace
}  // namespace allring
