#include "launcher/driver/driver.h"

#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/backends/agent_starter.h"
#include "launcher/driver/agent_connection.h"
#include "launcher/driver/job_outcome.h"
#include "launcher/driver/stdin_relay.h"
#include "launcher/event_loop.h"
#include "launcher/local_host.h"
#include "launcher/output/display.h"
#include "launcher/process_tree.h"
#include "launcher/protocol.h"
#include "runtime/rendezvous/key_value.h"

namespace allring {

namespace {

using launcher::AgentEvent;
using launcher::DriverCommand;

/// After a first failure the other ranks may still report what they saw of it.
constexpr seconds kSettle{3};
/// Hosts that fail to start are reported together.
constexpr milliseconds kMoreFailures{300};
/// For agents to clean up after the last rank has ended.
constexpr seconds kFinish{15};
/// For the output of killed ranks to arrive, and of ended jobs to be taken by whoever reads it.
constexpr seconds kLastOutput{2};

/// Signals that end the job, and those that are only passed on to the ranks.
constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kPassedSignals[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP};

nanoseconds to_duration(double seconds_count) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(seconds_count));
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const ssize_t got = ::getrandom(bytes.data() + have, count - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string to_hex(const std::string& bytes) {
  std::string hex;
  for (unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string current_folder() {
  std::unique_ptr<char, decltype(&std::free)> folder(::getcwd(nullptr, 0), &std::free);
  return folder ? folder.get() : "/";
}

/// What the driver reads through its signalfd. Signals that its parent had it ignore, as nohup does
/// with SIGHUP, stay ignored.
sigset_t handled_signals() {
  sigset_t handled;
  ::sigemptyset(&handled);
  ::sigaddset(&handled, SIGCHLD);
  auto add = [&handled](int signal) {
    struct sigaction action;
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      ::sigaddset(&handled, signal);
  };
  for (int signal : kEndingSignals) add(signal);
  for (int signal : kPassedSignals) add(signal);
  return handled;
}

class Driver {
 public:
  Driver(const Arguments& arguments, const Placement& placement, const Environment& environment,
         Display::Options display);
  int run();

 private:
  enum class Phase {
    kStarting,   // agents come up
    kRunning,    // ranks run
    kSettling,   // one has failed; the others may say so
    kAsked,      // ranks have been asked to end
    kKilled,     // ranks have been killed
    kFinishing,  // no rank is left; agents clean up and end
  };

  struct Agent {
    const PlacedHost* placed = nullptr;
    std::unique_ptr<AgentConnection> connection;  // null if it could not even be tried
    bool ready = false;
    bool ended = false;
    int free_port = 0;
    std::int64_t uncredited_bytes = 0;
  };

  // Starting.
  void start_agents();
  void start_agent(Agent* agent);
  void on_start_timeout();
  void fail_start(const std::string& line, int exit_code);
  void start_ranks();
  DriverCommand start_command(const Agent& agent, std::size_t index) const;
  std::string master_address() const;

  // Running.
  void on_event(Agent* agent, AgentEvent event);
  void on_output(Agent* agent, const launcher::Output& output);
  void on_key_watch(Agent* agent, const launcher::KeyWatch& watch);
  void on_agent_ended(Agent* agent, Status status, int exit_code);
  void on_signals();
  void on_signal(int number);
  void pause();
  void on_output_broken(OutputStream stream, const Status& status);

  // Ending.
  void on_progress();
  void ask_to_end(int signal);
  void kill_ranks();
  void finish();
  void enter(Phase phase);
  Deadline last_output_deadline() const {
    return deadline_after(hurried_ ? milliseconds(200) : milliseconds(kLastOutput));
  }

  void send_to_all(const DriverCommand& command);
  void say(const std::string& line) { display_.say("hvdrun: " + line + "\n"); }
  void say_if_verbose(const std::string& line) {
    if (arguments_.verbose) say(line);
  }
  void beat();
  std::vector<pid_t> agent_pids() const;

  const Arguments& arguments_;
  const Placement& placement_;
  const Environment& environment_;
  const std::string job_id_ = to_hex(random_bytes(8));
  const std::string secret_ = random_bytes(32);

  EventLoop loop_;
  FileDescriptor signals_;
  MemoryKeyValueMap keys_;
  std::vector<Agent> agents_;
  JobOutcome outcome_;
  std::vector<bool> output_ended_;
  std::optional<StdinRelay> stdin_relay_;

  Phase phase_ = Phase::kStarting;
  EventLoop::TimerId phase_timer_ = 0;
  std::optional<int> ending_signal_;  // that we were sent
  std::vector<std::string> start_failures_;
  int start_exit_code_ = 0;
  bool hurried_ = false;  // by a second signal
  bool awaits_last_output_ = false;

  Display display_;  // last: its thread calls into the above
};

std::vector<std::string> host_of_ranks(const Placement& placement) {
  std::vector<std::string> names;
  for (const PlacedHost& placed : placement.hosts)
    names.insert(names.end(), placed.ranks.size(), placed.host.name);
  return names;
}

Driver::Driver(const Arguments& arguments, const Placement& placement,
               const Environment& environment, Display::Options display)
    : arguments_(arguments),
      placement_(placement),
      environment_(environment),
      agents_(placement.hosts.size()),
      outcome_(host_of_ranks(placement)),
      output_ended_(static_cast<std::size_t>(placement.size), false),
      display_(std::move(display), [this](OutputStream stream, Status status) {
        loop_.post([this, stream, status] { on_output_broken(stream, status); });
      }) {}

int Driver::run() {
  adopt_orphans();
  for (const std::string& warning : arguments_.warnings) say(warning);

  const sigset_t handled = handled_signals();
  signals_.reset(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  loop_.watch(signals_.get(), POLLIN, [this] { on_signals(); });

  start_agents();
  beat();
  loop_.run();

  // Agents that were lost or given up may have left something here.
  end_descendants({}, deadline_after(seconds(5)), [](pid_t, int) {});
  for (int rank = 0; rank < placement_.size; ++rank) display_.close(rank);
  int exit_code = start_exit_code_ != 0 ? start_exit_code_ : outcome_.exit_code();
  if (ending_signal_) {
    exit_code = 128 + *ending_signal_;
  } else if (start_exit_code_ == 0) {
    display_.say(outcome_.account([this](int rank) { return display_.last_lines(rank); }));
  }
  const bool written = display_.flush(ending_signal_ ? last_output_deadline() : kNoDeadline);
  if (!written) ::_exit(exit_code);  // the writer hangs in its write and can only end with us
  return exit_code;
}

// --- starting ---------------------------------------------------------------------------------

void Driver::start_agents() {
  phase_timer_ =
      loop_.after(to_duration(arguments_.start_timeout_seconds), [this] { on_start_timeout(); });
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    agents_[i].placed = &placement_.hosts[i];
    start_agent(&agents_[i]);
  }
}

void Driver::start_agent(Agent* agent) {
  const Host& host = agent->placed->host;
  Result<AgentStarter> starter =
      host.local ? local_starter()
                 : ssh_starter(host,
                               {arguments_.ssh_port, arguments_.ssh_identity_file,
                                arguments_.ssh_args, arguments_.remote_hvdrun},
                               environment_.find("PATH").value_or(""));
  if (!starter.ok()) return on_agent_ended(agent, starter.status(), 2);
  if (arguments_.verbose) {
    std::string line = "host " + host.name + ": starting its agent:";
    for (const std::string& word : starter->argv) line += " " + word;
    say(line);
  }
  Result<std::unique_ptr<AgentConnection>> connection = AgentConnection::start(
      host, *starter, arguments_.remote_hvdrun, environment_.entries(), loop_,
      {[this, agent](AgentEvent event) { on_event(agent, std::move(event)); },
       [this, agent](Status status, int exit_code) {
         on_agent_ended(agent, std::move(status), exit_code);
       },
       [this, agent](const std::string& line) {
         say("host " + agent->placed->host.name + ": " + line);
       }});
  if (!connection.ok()) return on_agent_ended(agent, connection.status(), 1);
  agent->connection = std::move(connection).value();
}

void Driver::on_start_timeout() {
  for (Agent& agent : agents_) {
    if (!agent.ready && !agent.ended)
      fail_start("host " + agent.placed->host.name + ": no answer within --start-timeout (" +
                     std::to_string(std::lround(arguments_.start_timeout_seconds)) + " s)" +
                     (agent.placed->host.local ? "" : "; try: ssh " + agent.placed->host.name),
                 1);
  }
}

/// Notes a failure and, a moment later, gives the start up.
void Driver::fail_start(const std::string& line, int exit_code) {
  if (start_exit_code_ == 0) {
    enter(Phase::kStarting);
    phase_timer_ = loop_.after(kMoreFailures, [this] {
      for (const std::string& each : start_failures_) say(each);
      finish();
    });
  }
  start_failures_.push_back(line);
  start_exit_code_ = std::max(start_exit_code_, exit_code);
}

void Driver::start_ranks() {
  enter(Phase::kRunning);
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    agents_[i].connection->send(start_command(agents_[i], i));
    if (!agents_[i].placed->host.local) agents_[i].connection->expect_signs_of_life(true);
  }
}

DriverCommand Driver::start_command(const Agent& agent, std::size_t index) const {
  DriverCommand command;
  launcher::Start& start = *command.mutable_start();
  start.set_job_id(job_id_);
  start.set_secret(secret_);
  start.set_host(agent.placed->host.name);
  for (const std::string& word : arguments_.command) start.add_argv(word);
  const bool local = agent.placed->host.local;
  for (std::string& entry : local ? environment_.entries() : environment_.portable_entries())
    start.add_inherited_environment(std::move(entry));
  start.set_keep_host_environment(!local);
  if (!arguments_.network_interfaces.empty())
    start.add_given_environment("ALLRING_NETWORK_INTERFACES=" + arguments_.network_interfaces);
  if (arguments_.start_timeout_given) {
    char seconds_text[32];
    std::snprintf(seconds_text, sizeof seconds_text, "%g", arguments_.start_timeout_seconds);
    start.add_given_environment("ALLRING_START_TIMEOUT=" + std::string(seconds_text));
  }
  for (const std::string& entry : arguments_.environment) start.add_given_environment(entry);
  start.set_working_directory(arguments_.working_directory.empty() ? current_folder()
                                                                   : arguments_.working_directory);
  start.set_working_directory_is_given(!arguments_.working_directory.empty());
  start.set_world_size(placement_.size);
  start.set_hosts(static_cast<int>(placement_.hosts.size()));
  start.set_host_index(static_cast<int>(index));
  for (const PlacedRank& placed : agent.placed->ranks) {
    launcher::RankNumbers& numbers = *start.add_ranks();
    numbers.set_rank(placed.rank);
    numbers.set_local_rank(placed.local_rank);
    numbers.set_local_size(placed.local_size);
    numbers.set_cross_rank(placed.cross_rank);
    numbers.set_cross_size(placed.cross_size);
  }
  start.set_master_address(master_address());
  start.set_master_port(agents_[0].free_port);
  start.set_output_window_bytes(kOutputWindowBytes);
  return command;
}

std::string Driver::master_address() const {
  if (placement_.hosts.size() == 1) return "127.0.0.1";
  const Host& first = placement_.hosts[0].host;
  if (!first.local) return first.name;
  // The name that means us here may mean another or nothing there.
  const std::string address = own_address_towards(placement_.hosts[1].host.name);
  return address.empty() ? own_hostname() : address;
}

// --- running ----------------------------------------------------------------------------------

void Driver::on_event(Agent* agent, AgentEvent event) {
  const std::string& host = agent->placed->host.name;
  switch (event.event_case()) {
    case AgentEvent::kReady:
      agent->ready = true;
      agent->free_port = event.ready().free_port();
      say_if_verbose("host " + host + ": agent " + std::to_string(event.ready().pid()) + " on " +
                     event.ready().hostname() + " is ready, version " + event.ready().version());
      if (phase_ == Phase::kStarting && start_exit_code_ == 0 &&
          std::all_of(agents_.begin(), agents_.end(), [](const Agent& a) { return a.ready; }))
        start_ranks();
      break;
    case AgentEvent::kStarted:
      say_if_verbose("host " + host + ": its ranks have started");
      if (agent == &agents_[0] && !stdin_relay_) {
        stdin_relay_.emplace(
            loop_, kInputWindowBytes,
            StdinRelay::Handlers{[this](std::string bytes) {
                                   DriverCommand command;
                                   command.mutable_input()->set_bytes(std::move(bytes));
                                   agents_[0].connection->send(std::move(command));
                                 },
                                 [this] {
                                   DriverCommand command;
                                   command.mutable_input()->set_end(true);
                                   agents_[0].connection->send(std::move(command));
                                 }});
      }
      break;
    case AgentEvent::kStartFailed:
      fail_start((agents_.size() > 1 ? "host " + host + ": " : "") + event.start_failed().message(),
                 2);
      break;
    case AgentEvent::kOutput:
      on_output(agent, event.output());
      break;
    case AgentEvent::kExited:
      outcome_.rank_exited(event.exited().rank(), event.exited().wait_status(),
                           event.exited().after_signal(), Clock::real().now());
      say_if_verbose("rank " + std::to_string(event.exited().rank()) + " on host " + host +
                     " has ended");
      if (event.exited().rank() == 0 && stdin_relay_) stdin_relay_->stop();
      on_progress();
      break;
    case AgentEvent::kOutputEnded:
      output_ended_[static_cast<std::size_t>(event.output_ended().rank())] = true;
      display_.close(event.output_ended().rank());
      on_progress();
      break;
    case AgentEvent::kInputCredit:
      if (stdin_relay_) stdin_relay_->grant(event.input_credit().bytes());
      break;
    case AgentEvent::kKeyPut:
      keys_.put(event.key_put().key(), event.key_put().value());
      break;
    case AgentEvent::kKeyWatch:
      on_key_watch(agent, event.key_watch());
      break;
    case AgentEvent::kKeyRemove:
      keys_.remove(event.key_remove().key());
      break;
    case AgentEvent::kWarning:
      say("host " + host + ": " + event.warning().text());
      break;
    case AgentEvent::kHeartbeat:
    case AgentEvent::kFinished:
    case AgentEvent::EVENT_NOT_SET:
      break;
  }
}

void Driver::on_output(Agent* agent, const launcher::Output& output) {
  const auto count = static_cast<std::int64_t>(output.bytes().size());
  display_.feed(output.rank(),
                output.standard_error() ? OutputStream::kStderr : OutputStream::kStdout,
                output.bytes(), output.time_us(), [this, agent, count] {
                  loop_.post([agent, count] {
                    agent->uncredited_bytes += count;
                    if (agent->uncredited_bytes < kOutputWindowBytes / 4) return;
                    DriverCommand command;
                    command.mutable_output_credit()->set_bytes(agent->uncredited_bytes);
                    agent->uncredited_bytes = 0;
                    agent->connection->send(std::move(command));
                  });
                });
}

void Driver::on_key_watch(Agent* agent, const launcher::KeyWatch& watch) {
  keys_.watch(watch.key(), [agent, id = watch.watch()](std::string value) {
    DriverCommand command;
    command.mutable_key_found()->set_watch(id);
    command.mutable_key_found()->set_value(std::move(value));
    agent->connection->send(std::move(command));
  });
}

void Driver::on_agent_ended(Agent* agent, Status status, int exit_code) {
  agent->ended = true;
  const Host& host = agent->placed->host;
  if (phase_ == Phase::kStarting && !status.ok()) {
    fail_start(agent->ready ? "host " + host.name + ": " + status.message() : status.message(),
               status.code() == StatusCode::kInvalidArgument ? 2 : exit_code);
  } else if (!status.ok() && phase_ != Phase::kFinishing) {
    say("host " + host.name + " is lost: " + status.message());
    outcome_.host_lost(host.name, status.message(), exit_code, Clock::real().now());
    for (const PlacedRank& placed : agent->placed->ranks)
      output_ended_[static_cast<std::size_t>(placed.rank)] = true;
    // What its ranks had started is our child now.
    if (host.local) end_descendants(agent_pids(), deadline_after(seconds(5)), [](pid_t, int) {});
  }
  on_progress();
}

void Driver::on_signals() {
  signalfd_siginfo info;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) {
      on_signal(static_cast<int>(info.ssi_signo));
      continue;
    }
    reap_children([this](pid_t pid, int wait_status) {
      for (Agent& agent : agents_) {
        if (agent.connection && agent.connection->starter_pid() == pid)
          agent.connection->on_starter_ended(wait_status);
      }
    });
  }
}

void Driver::on_signal(int number) {
  if (number == SIGTSTP) return pause();
  if (std::find(std::begin(kEndingSignals), std::end(kEndingSignals), number) ==
      std::end(kEndingSignals)) {
    DriverCommand command;
    command.mutable_signal()->set_number(number);
    send_to_all(command);
    return;
  }
  if (ending_signal_) {
    hurried_ = true;
    if (phase_ == Phase::kFinishing) return loop_.stop();
    return kill_ranks();
  }
  ending_signal_ = number;
  if (phase_ == Phase::kStarting) {
    finish();
  } else if (phase_ == Phase::kRunning || phase_ == Phase::kSettling) {
    say(std::string("got signal ") + std::to_string(number) + " (" + ::strsignal(number) +
        "), ending the job; once more kills it");
    ask_to_end(number);
  }
}

/// ^Z: the ranks stop, then we do; SIGCONT, which a shell's fg sends, is passed on to them.
void Driver::pause() {
  DriverCommand stop;
  stop.mutable_signal()->set_number(SIGTSTP);
  send_to_all(stop);
  DriverCommand pausing;
  pausing.mutable_heartbeat()->set_pausing(true);
  send_to_all(pausing);
  for (Agent& agent : agents_) {
    if (agent.connection) agent.connection->expect_signs_of_life(false);
  }
  // Time for the commands to leave: once stopped, no thread of ours sends them.
  loop_.after(milliseconds(200), [this] {
    ::raise(SIGSTOP);
    beat();
    for (Agent& agent : agents_) {
      if (agent.connection && !agent.placed->host.local)
        agent.connection->expect_signs_of_life(true);
    }
  });
}

void Driver::on_output_broken(OutputStream stream, const Status& status) {
  const bool is_stdout = stream == OutputStream::kStdout;
  if (status.code() == StatusCode::kPeerLost && is_stdout) {
    // As for any program in a pipe whose reader has ended.
    if (!ending_signal_) {
      ending_signal_ = SIGPIPE;
      if (phase_ == Phase::kStarting) {
        finish();
      } else {
        ask_to_end(SIGTERM);
      }
    }
  } else if (is_stdout) {
    say("standard output: " + status.message() + "; the rest of it is lost");
  }
}

// --- ending -----------------------------------------------------------------------------------

void Driver::enter(Phase phase) {
  loop_.cancel(phase_timer_);
  phase_timer_ = 0;
  phase_ = phase;
}

/// Goes on to what the ends of ranks and agents call for.
void Driver::on_progress() {
  const bool all_agents_ended =
      std::all_of(agents_.begin(), agents_.end(), [](const Agent& agent) { return agent.ended; });
  if (phase_ == Phase::kFinishing) {
    if (all_agents_ended) loop_.stop();
    return;
  }
  if (phase_ == Phase::kStarting || start_exit_code_ != 0) return;
  const bool all_output_ended =
      std::all_of(output_ended_.begin(), output_ended_.end(), [](bool ended) { return ended; });
  if (outcome_.all_ended() && all_output_ended) return finish();
  if (outcome_.all_ended() && phase_ == Phase::kKilled && !awaits_last_output_) {
    // Nobody may be reading our output; the job ends all the same.
    awaits_last_output_ = true;
    loop_.cancel(phase_timer_);
    phase_timer_ = loop_.after(last_output_deadline() - Clock::real().now(), [this] { finish(); });
  }
  if (outcome_.failed() && phase_ == Phase::kRunning) {
    enter(Phase::kSettling);
    phase_timer_ = loop_.after(kSettle, [this] { ask_to_end(SIGTERM); });
  }
}

void Driver::ask_to_end(int signal) {
  if (phase_ == Phase::kAsked || phase_ == Phase::kKilled || phase_ == Phase::kFinishing) return;
  enter(Phase::kAsked);
  DriverCommand command;
  command.mutable_signal()->set_number(signal);
  send_to_all(command);
  phase_timer_ = loop_.after(to_duration(arguments_.grace_seconds), [this] { kill_ranks(); });
}

void Driver::kill_ranks() {
  if (phase_ == Phase::kKilled || phase_ == Phase::kFinishing) return;
  enter(Phase::kKilled);
  say_if_verbose("killing the ranks that are left");
  DriverCommand command;
  command.mutable_signal()->set_number(SIGKILL);
  send_to_all(command);
  phase_timer_ = loop_.after(kFinish, [this] { finish(); });
}

void Driver::finish() {
  if (phase_ == Phase::kFinishing) return;
  enter(Phase::kFinishing);
  if (stdin_relay_) stdin_relay_->stop();
  for (Agent& agent : agents_) {
    if (!agent.connection || agent.ended) continue;
    if (agent.ready) {
      agent.connection->expect_signs_of_life(false);
    } else {
      agent.connection->give_up(Status::aborted("the start was given up"));
    }
  }
  DriverCommand command;
  command.mutable_finish();
  send_to_all(command);
  phase_timer_ = loop_.after(kFinish, [this] {
    for (Agent& agent : agents_) {
      if (!agent.connection || agent.ended) continue;
      say("host " + agent.placed->host.name +
          ": its agent does not end; processes of the job may be left there");
      agent.connection->give_up(Status::timed_out("its agent does not end"));
    }
  });
  on_progress();
}

void Driver::send_to_all(const DriverCommand& command) {
  for (Agent& agent : agents_) {
    if (agent.connection) agent.connection->send(command);
  }
}

void Driver::beat() {
  DriverCommand command;
  command.mutable_heartbeat();
  send_to_all(command);
  loop_.after(kHeartbeatInterval, [this] { beat(); });
}

std::vector<pid_t> Driver::agent_pids() const {
  std::vector<pid_t> pids;
  for (const Agent& agent : agents_) {
    if (agent.connection && !agent.ended) pids.push_back(agent.connection->starter_pid());
  }
  return pids;
}

}  // namespace

int run_driver(const Arguments& arguments, const Placement& placement,
               const Environment& environment) {
  // Before any thread: all must have the signals blocked that the loop reads.
  const sigset_t handled = handled_signals();
  ::pthread_sigmask(SIG_BLOCK, &handled, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  Display::Options display{arguments.timestamps, std::nullopt};
  if (!arguments.output_directory.empty()) {
    Result<RankFiles> files = RankFiles::open(arguments.output_directory, placement.size);
    if (!files.ok()) {
      std::fprintf(stderr, "hvdrun: %s\n", files.status().message().c_str());
      return 2;
    }
    display.files = std::move(files).value();
  }
  return Driver(arguments, placement, environment, std::move(display)).run();
}

}  // namespace allring
