#include "launcher/driver/signal_reader.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace allring {

namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kPassedOn[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP};

sigset_t handled_signals() {
  sigset_t handled;
  ::sigemptyset(&handled);
  ::sigaddset(&handled, SIGCHLD);
  auto add = [&handled](int signal) {
    struct sigaction action;
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      ::sigaddset(&handled, signal);
  };
  for (int signal : kEnding) add(signal);
  for (int signal : kPassedOn) add(signal);
  return handled;
}

}  // namespace

void SignalReader::block() {
  const sigset_t handled = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &handled, nullptr);
}

SignalReader::SignalReader(EventLoop& loop, std::function<void(int number)> got) : loop_(loop) {
  const sigset_t handled = handled_signals();
  fd_.reset(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  loop_.watch(fd_.get(), POLLIN, [fd = fd_.get(), got = std::move(got)] {
    signalfd_siginfo info;
    while (::read(fd, &info, sizeof info) == sizeof info) got(static_cast<int>(info.ssi_signo));
  });
}

SignalReader::~SignalReader() { loop_.unwatch(fd_.get()); }

bool SignalReader::ends_jobs(int number) {
  return std::find(std::begin(kEnding), std::end(kEnding), number) != std::end(kEnding);
}

}  // namespace allring
