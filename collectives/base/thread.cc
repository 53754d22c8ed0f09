#include "collectives/base/thread.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

#include "collectives/base/check.h"

namespace allring {

std::thread start_thread(const std::string& name, std::function<void()> body) {
  ALLRING_CHECK(name.size() <= 15, "Linux keeps 15 bytes of a thread's name");
  // A new thread inherits the mask; blocking only once it runs would leave a gap.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name.c_str());
  return thread;
}

}  // namespace allring
