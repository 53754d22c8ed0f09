#include "collectives/base/thread.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <utility>

#include "collectives/base/check.h"

namespace allring {

std::thread start_thread(const std::string& name, std::function<void()> body) {
  std::optional<std::thread> thread = try_start_thread(name, std::move(body));
  ALLRING_CHECK(thread, "the system allows another thread (ulimit -u, pids limit)");
  return *std::move(thread);
}

std::optional<std::thread> try_start_thread(const std::string& name, std::function<void()> body) {
  ALLRING_CHECK(name.size() <= 15, "Linux keeps 15 bytes of a thread's name");
  // A new thread inherits the mask; blocking only once it runs would leave a gap.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::optional<std::thread> thread;
  try {
    thread.emplace(std::move(body));
  } catch (const std::system_error&) {
    thread.reset();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (thread) pthread_setname_np(thread->native_handle(), name.c_str());
  return thread;
}

}  // namespace allring
