#include "launcher/driver/agent_connection.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "launcher/child_process.h"
#include "launcher/protocol.h"

namespace allring {

namespace {

constexpr std::size_t kMostNoise = 1 << 20;
constexpr std::size_t kMostWords = 64 << 10;
/// Between the end of the call and the end of the starter, or the other way round.
constexpr seconds kSettle{3};

}  // namespace

AgentConnection::AgentConnection(const Host& host, const std::string& by_hand,
                                 const std::string& remote_hvdrun, EventLoop& loop,
                                 Handlers handlers)
    : host_(host),
      by_hand_(by_hand),
      remote_hvdrun_(remote_hvdrun),
      loop_(loop),
      handlers_(std::move(handlers)) {}

Result<std::unique_ptr<AgentConnection>> AgentConnection::start(
    const Host& host, const AgentStarter& starter, const std::string& remote_hvdrun,
    const std::vector<std::string>& environment, EventLoop& loop, Handlers handlers) {
  std::unique_ptr<AgentConnection> connection(
      new AgentConnection(host, starter.by_hand, remote_hvdrun, loop, std::move(handlers)));
  ALLRING_ASSIGN_OR_RETURN(auto pair, make_socket_pair());
  ALLRING_ASSIGN_OR_RETURN(Pipe words, make_pipe());
  ChildCommand command;
  command.program = starter.program;
  command.argv = starter.argv;
  command.environment = environment;
  command.stdin_fd = pair.second.get();
  command.stdout_fd = pair.second.get();
  command.stderr_fd = words.write_end.get();
  // A session of its own, so that the terminal's ^C reaches the driver alone, which then decides.
  command.group = ChildCommand::Group::kSession;
  command.death_signal = SIGTERM;
  Result<pid_t> pid = start_child(command);
  if (!pid.ok()) return pid.status().with_prefix("host " + host.name + ": ");
  connection->pid_ = *pid;

  connection->socket_ = std::move(pair.first);
  connection->words_pipe_ = std::move(words.read_end);
  set_nonblocking(connection->socket_.get());
  set_nonblocking(connection->words_pipe_.get());
  AgentConnection* self = connection.get();
  loop.watch(self->socket_.get(), POLLIN, [self] { self->read_marker(); });
  loop.watch(self->words_pipe_.get(), POLLIN, [self] { self->read_words(); });
  return connection;
}

AgentConnection::~AgentConnection() {
  loop_.cancel(settle_timer_);
  loop_.cancel(silence_timer_);
  if (socket_) loop_.unwatch(socket_.get());
  if (words_pipe_) loop_.unwatch(words_pipe_.get());
  if (!wait_status_) ::kill(pid_, SIGKILL);
}

void AgentConnection::read_marker() {
  // Only looked at, so that not one byte of gRPC's is taken.
  char bytes[4096];
  const ssize_t seen = ::recv(socket_.get(), bytes, sizeof bytes, MSG_PEEK);
  if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (seen <= 0) {
    loop_.unwatch(socket_.get());
    socket_.reset();
    settle();
    return;
  }
  const std::size_t before = received_.size();
  received_.append(bytes, static_cast<std::size_t>(seen));
  const std::size_t marker = received_.find(kAgentMarker);
  if (marker == std::string::npos && received_.find(kAgentMissingMarker) != std::string::npos)
    missing_ = true;
  const std::size_t other = received_.find(kAnyAgentMarker);
  if (marker == std::string::npos && other != std::string::npos &&
      received_.find('\n', other + 1) != std::string::npos) {
    give_up(Status::aborted("host " + host_.name +
                            ": its hvdrun is of another version; install the same allring there, "
                            "or say where it is with --remote-hvdrun PATH"));
    return;
  }
  std::size_t take = static_cast<std::size_t>(seen);
  if (marker != std::string::npos) take = marker + kAgentMarker.size() - before;
  [[maybe_unused]] const ssize_t taken = ::recv(socket_.get(), bytes, take, 0);
  if (marker != std::string::npos) {
    begin_call();
  } else if (received_.size() > kMostNoise) {
    give_up(Status::aborted("host " + host_.name +
                            ": its login shell writes without end instead of starting hvdrun"));
  }
}

void AgentConnection::begin_call() {
  loop_.unwatch(socket_.get());
  received_.clear();
  call_.emplace(
      std::move(socket_), loop_,
      AgentCall::Handlers{[this](launcher::AgentEvent event) { on_event(std::move(event)); },
                          [this](Status status) { on_call_ended(std::move(status)); }});
}

void AgentConnection::read_words() {
  char bytes[4096];
  const ssize_t got = ::read(words_pipe_.get(), bytes, sizeof bytes);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    loop_.unwatch(words_pipe_.get());
    words_pipe_.reset();
    return;
  }
  words_.append(bytes, static_cast<std::size_t>(got));
  if (started_) flush_words();
  if (words_.size() > kMostWords) words_.erase(0, words_.size() - kMostWords);
}

void AgentConnection::flush_words() {
  for (std::size_t end; (end = words_.find('\n')) != std::string::npos; words_.erase(0, end + 1)) {
    std::string line = words_.substr(0, end);
    while (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) handlers_.words(std::move(line));
  }
}

void AgentConnection::on_event(launcher::AgentEvent event) {
  if (ended_) return;
  if (!started_) {
    started_ = true;
    words_.clear();  // of a successful start
  }
  if (expects_signs_) expect_signs_of_life(true);
  if (event.has_finished()) finished_event_ = true;
  handlers_.event(std::move(event));
}

void AgentConnection::on_call_ended(Status status) {
  call_end_ = std::move(status);
  settle();
}

void AgentConnection::on_starter_ended(int wait_status) {
  wait_status_ = wait_status;
  settle();
}

void AgentConnection::give_up(Status reason) {
  if (ended_ || given_up_) return;
  given_up_ = std::move(reason);
  if (!wait_status_) ::kill(pid_, SIGKILL);
  settle();
}

void AgentConnection::expect_signs_of_life(bool expected) {
  expects_signs_ = expected;
  loop_.cancel(silence_timer_);
  if (!expected || ended_) return;
  silence_timer_ = loop_.after(kAgentSilence, [this] {
    give_up(Status::timed_out("no sign of life for " + std::to_string(kAgentSilence.count()) +
                              " seconds: it is frozen or cut off"));
  });
}

void AgentConnection::send(launcher::DriverCommand command) {
  if (call_ && !ended_) call_->send(std::move(command));
}

/// Tells of the end once both halves of it, the call's and the starter's, are known, or one has
/// waited long enough for the other.
void AgentConnection::settle() {
  if (ended_) return;
  const bool call_over = call_ ? call_end_.has_value() : !socket_;
  const bool starter_over = wait_status_.has_value();
  if (!call_over && !starter_over && !given_up_) return;
  if (!call_over || !starter_over) {
    if (settle_timer_ == 0) {
      settle_timer_ = loop_.after(kSettle, [this] {
        if (!wait_status_) ::kill(pid_, SIGKILL);
        finish(given_up_.value_or(finished_event_ ? Status()
                                                  : Status::peer_lost(-1, "the connection broke")),
               1);
      });
    }
    return;
  }

  if (words_pipe_) read_words();
  if (given_up_) {
    finish(*given_up_, 1);
  } else if (finished_event_) {
    finish({}, 0);
  } else if (!started_) {
    finish(missing_ ? explain_missing_hvdrun(host_, remote_hvdrun_)
                    : explain_failed_start(host_, by_hand_, words_, *wait_status_),
           1);
  } else {
    const std::string who = host_.local ? "its agent" : "ssh to it";
    const bool signalled = WIFSIGNALED(*wait_status_);
    finish(Status::peer_lost(-1, who + " ended with " + describe_wait_status(*wait_status_)),
           signalled ? exit_code_of(*wait_status_) : 1);
  }
}

void AgentConnection::finish(Status status, int exit_code) {
  if (ended_) return;
  ended_ = true;
  loop_.cancel(settle_timer_);
  loop_.cancel(silence_timer_);
  if (started_) flush_words();
  handlers_.ended(std::move(status), exit_code);
}

}  // namespace allring
