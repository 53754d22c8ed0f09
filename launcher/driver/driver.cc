#include "launcher/driver/driver.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/driver/ending.h"
#include "launcher/driver/host_agent.h"
#include "launcher/driver/job_outcome.h"
#include "launcher/driver/signal_reader.h"
#include "launcher/driver/start_command.h"
#include "launcher/driver/stdin_relay.h"
#include "launcher/event_loop.h"
#include "launcher/grpc_process.h"
#include "launcher/output/display.h"
#include "launcher/process_tree.h"
#include "launcher/protocol.h"
#include "runtime/rendezvous/key_value.h"

namespace allring {

namespace {

using launcher::AgentEvent;
using launcher::DriverCommand;

/// Hosts that fail to start are reported together.
constexpr milliseconds kMoreFailures{300};
/// For agents to clean up after the last rank has ended.
constexpr seconds kFinish{15};
/// For the output of killed ranks to arrive, and of ended jobs to be taken by whoever reads it.
constexpr milliseconds kLastOutput{2000};
constexpr milliseconds kLastOutputInHurry{200};

nanoseconds to_duration(double count) {
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(count));
}

DriverCommand signal_command(int number) {
  DriverCommand command;
  command.mutable_signal()->set_number(number);
  return command;
}

std::vector<std::string> host_of_ranks(const Placement& placement) {
  std::vector<std::string> names;
  for (const PlacedHost& placed : placement.hosts)
    names.insert(names.end(), placed.ranks.size(), placed.host.name);
  return names;
}

class Driver {
 public:
  Driver(const Arguments& arguments, const Placement& placement, const Environment& environment,
         Display::Options display);
  int run();

 private:
  enum class Phase {
    kStarting,   // agents come up
    kRunning,    // ranks run, or are being ended
    kFinishing,  // no rank is left; agents clean up and end
  };

  // Starting.
  void on_start_timeout();
  void fail_start(const std::string& line, int exit_code);
  void start_ranks();
  void relay_stdin();

  // Running.
  void on_event(HostAgent& agent, AgentEvent event);
  void on_output(HostAgent& agent, const launcher::Output& output);
  void on_key_watch(HostAgent& agent, const launcher::KeyWatch& watch);
  void on_agent_ended(HostAgent& agent, const Status& status, int exit_code);
  void on_agent_lost(HostAgent& agent, const Status& status, int exit_code);
  void on_reaped(pid_t pid, int wait_status);
  void on_signal(int number);
  void pause();
  void on_output_broken(OutputStream stream, const Status& status);
  void beat();

  // Ending.
  void enter(Phase phase);
  void on_progress();
  void begin_ending(int signal);
  void finish();
  void give_agents_up();
  int conclude();

  void send_to_all(const DriverCommand& command);
  void say(const std::string& line) { display_.say("hvdrun: " + line + "\n"); }
  void say_if_verbose(const std::string& line) {
    if (arguments_.verbose) say(line);
  }
  milliseconds last_output() const { return hurried_ ? kLastOutputInHurry : kLastOutput; }

  const Arguments& arguments_;
  const Placement& placement_;
  const Environment& environment_;
  const JobIdentity job_ = JobIdentity::make();

  /// Children that this process had before it became hvdrun, as after a shell's `exec hvdrun`.
  const std::vector<pid_t> strangers_ = descendants(::getpid());

  EventLoop loop_;
  SignalReader signals_;
  MemoryKeyValueMap keys_;
  std::deque<HostAgent> agents_;  // as placement_.hosts
  JobOutcome outcome_;
  std::vector<bool> output_ended_;  // of each rank
  std::optional<StdinRelay> stdin_relay_;

  Phase phase_ = Phase::kStarting;
  EventLoop::TimerId phase_timer_ = 0;
  EventLoop::TimerId beat_timer_ = 0;
  Ending ending_;
  std::optional<int> ending_signal_;  // that we were sent
  bool hurried_ = false;              // by a second one
  bool awaits_last_output_ = false;
  std::vector<std::string> start_failures_;
  int start_exit_code_ = 0;

  Display display_;  // last: its thread calls into the above
};

Driver::Driver(const Arguments& arguments, const Placement& placement,
               const Environment& environment, Display::Options display)
    : arguments_(arguments),
      placement_(placement),
      environment_(environment),
      signals_(loop_, [this](int number) { on_signal(number); }),
      outcome_(host_of_ranks(placement)),
      output_ended_(static_cast<std::size_t>(placement.size), false),
      ending_(loop_, to_duration(arguments.grace_seconds),
              {[this](int signal) { send_to_all(signal_command(signal)); }, [this] { finish(); }}),
      display_(std::move(display), [this](OutputStream stream, Status status) {
        loop_.post([this, stream, status] { on_output_broken(stream, status); });
      }) {}

int Driver::run() {
  adopt_orphans();
  for (const std::string& warning : arguments_.warnings) say(warning);
  phase_timer_ = loop_.after(std::chrono::duration_cast<nanoseconds>(
                                 std::chrono::duration<double>(arguments_.start_timeout_seconds)),
                             [this] { on_start_timeout(); });
  for (const PlacedHost& placed : placement_.hosts) {
    agents_.emplace_back(
        placed, arguments_, environment_, loop_,
        HostAgent::Handlers{
            [this](HostAgent& agent, AgentEvent event) { on_event(agent, std::move(event)); },
            [this](HostAgent& agent, const Status& status, int exit_code) {
              on_agent_ended(agent, status, exit_code);
            },
            [this](HostAgent& agent, const std::string& line) {
              say("host " + agent.host().name + ": " + line);
            }});
  }
  for (HostAgent& agent : agents_) agent.start();
  beat();
  loop_.run();
  return conclude();
}

// --- starting ---------------------------------------------------------------------------------

void Driver::on_start_timeout() {
  for (HostAgent& agent : agents_) {
    if (!agent.ready() && !agent.ended())
      fail_start(agent.describe_silence(arguments_.start_timeout_seconds), 1);
  }
}

/// Notes a failure and, a moment later, gives the start up.
void Driver::fail_start(const std::string& line, int exit_code) {
  if (start_exit_code_ == 0) {
    loop_.cancel(phase_timer_);
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
  const std::string address = master_address(placement_);
  for (std::size_t i = 0; i < agents_.size(); ++i) {
    agents_[i].send(start_command(job_, arguments_, placement_, i, environment_, address,
                                  agents_[0].free_port()));
    agents_[i].expect_signs_of_life(true);
  }
}

void Driver::relay_stdin() {
  stdin_relay_.emplace(loop_, kInputWindowBytes,
                       StdinRelay::Handlers{[this](std::string bytes) {
                                              DriverCommand command;
                                              command.mutable_input()->set_bytes(std::move(bytes));
                                              agents_[0].send(std::move(command));
                                            },
                                            [this] {
                                              DriverCommand command;
                                              command.mutable_input()->set_end(true);
                                              agents_[0].send(std::move(command));
                                            }});
}

// --- running ----------------------------------------------------------------------------------

void Driver::on_event(HostAgent& agent, AgentEvent event) {
  const std::string& host = agent.host().name;
  switch (event.event_case()) {
    case AgentEvent::kReady:
      say_if_verbose("host " + host + ": agent " + std::to_string(event.ready().pid()) + " on " +
                     event.ready().hostname() + " is ready, version " + event.ready().version());
      if (static_cast<int>(agent.placed().ranks.size()) > event.ready().cores())
        say_if_verbose("host " + host + ": " + std::to_string(agent.placed().ranks.size()) +
                       " ranks share " + std::to_string(event.ready().cores()) + " cores");
      if (phase_ == Phase::kStarting && start_exit_code_ == 0 &&
          std::all_of(agents_.begin(), agents_.end(),
                      [](const HostAgent& each) { return each.ready(); }))
        start_ranks();
      break;
    case AgentEvent::kStarted:
      say_if_verbose("host " + host + ": its ranks have started");
      if (&agent == &agents_[0]) relay_stdin();
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

void Driver::on_output(HostAgent& agent, const launcher::Output& output) {
  const auto count = static_cast<std::int64_t>(output.bytes().size());
  display_.feed(
      output.rank(), output.standard_error() ? OutputStream::kStderr : OutputStream::kStdout,
      output.bytes(), output.time_us(),
      [this, &agent, count] { loop_.post([&agent, count] { agent.credit_output(count); }); });
}

void Driver::on_key_watch(HostAgent& agent, const launcher::KeyWatch& watch) {
  keys_.watch(watch.key(), [&agent, id = watch.watch()](std::string value) {
    DriverCommand command;
    command.mutable_key_found()->set_watch(id);
    command.mutable_key_found()->set_value(std::move(value));
    agent.send(std::move(command));
  });
}

void Driver::on_agent_ended(HostAgent& agent, const Status& status, int exit_code) {
  const std::string& host = agent.host().name;
  if (status.ok()) {
    // As agreed.
  } else if (agent.sweeping()) {
    say("host " + host + ": processes of the job may be left there: " + status.message());
  } else if (phase_ == Phase::kStarting) {
    fail_start(agent.ready() ? "host " + host + ": " + status.message() : status.message(),
               status.code() == StatusCode::kInvalidArgument ? 2 : exit_code);
  } else if (phase_ != Phase::kFinishing) {
    on_agent_lost(agent, status, exit_code);
  }
  on_progress();
}

void Driver::on_agent_lost(HostAgent& agent, const Status& status, int exit_code) {
  const std::string& host = agent.host().name;
  say("host " + host + " is lost: " + status.message());
  outcome_.host_lost(host, status.message(), exit_code, Clock::real().now());
  for (const PlacedRank& placed : agent.placed().ranks)
    output_ended_[static_cast<std::size_t>(placed.rank)] = true;
  if (agent.host().local) {
    // What its ranks had started is our child now.
    std::vector<pid_t> spare = strangers_;
    for (const HostAgent& each : agents_) {
      if (!each.ended()) spare.push_back(each.starter_pid());
    }
    end_descendants(spare, deadline_after(seconds(5)),
                    [this](pid_t pid, int wait_status) { on_reaped(pid, wait_status); });
  } else if (status.code() != StatusCode::kTimedOut) {
    agent.sweep(job_.id);
  }
}

void Driver::on_reaped(pid_t pid, int wait_status) {
  for (HostAgent& agent : agents_) {
    if (agent.starter_pid() == pid) agent.on_starter_ended(wait_status);
  }
}

void Driver::on_signal(int number) {
  if (number == SIGCHLD) {
    reap_children([this](pid_t pid, int wait_status) { on_reaped(pid, wait_status); });
  } else if (number == SIGTSTP) {
    pause();
  } else if (!SignalReader::ends_jobs(number)) {
    send_to_all(signal_command(number));
  } else if (!ending_signal_) {
    begin_ending(number);
  } else {
    hurried_ = true;
    if (phase_ == Phase::kFinishing) return loop_.stop();
    ending_.kill();
    on_progress();
  }
}

/// ^Z: the ranks stop, then we do; SIGCONT, which a shell's fg sends, is passed on to them.
void Driver::pause() {
  loop_.cancel(beat_timer_);
  send_to_all(signal_command(SIGTSTP));
  DriverCommand pausing;
  pausing.mutable_heartbeat()->set_pausing(true);
  send_to_all(pausing);
  for (HostAgent& agent : agents_) agent.expect_signs_of_life(false);
  // Time for the commands to leave: once stopped, no thread of ours sends them.
  loop_.after(milliseconds(200), [this] {
    ::raise(SIGSTOP);
    beat();
    for (HostAgent& agent : agents_) agent.expect_signs_of_life(true);
  });
}

void Driver::on_output_broken(OutputStream stream, const Status& status) {
  if (stream == OutputStream::kStderr) return;  // nowhere to say so
  if (status.code() != StatusCode::kPeerLost) {
    say("standard output: " + status.message() + "; the rest of it is lost");
  } else if (!ending_signal_) {
    begin_ending(SIGPIPE);  // as any program in a pipe whose reader has ended
  }
}

void Driver::beat() {
  DriverCommand command;
  command.mutable_heartbeat();
  send_to_all(command);
  beat_timer_ = loop_.after(kHeartbeatInterval, [this] { beat(); });
}

// --- ending -----------------------------------------------------------------------------------

void Driver::enter(Phase phase) {
  loop_.cancel(phase_timer_);
  phase_timer_ = 0;
  phase_ = phase;
}

/// Goes on to what the ends of ranks and agents call for.
void Driver::on_progress() {
  if (phase_ == Phase::kFinishing) {
    if (std::all_of(agents_.begin(), agents_.end(),
                    [](const HostAgent& agent) { return agent.ended(); }))
      loop_.stop();
    return;
  }
  if (phase_ == Phase::kStarting || start_exit_code_ != 0) return;
  const bool all_output_ended =
      std::all_of(output_ended_.begin(), output_ended_.end(), [](bool ended) { return ended; });
  if (outcome_.all_ended() && all_output_ended) return finish();
  if (outcome_.all_ended() && ending_.killed() && !awaits_last_output_) {
    // Nobody may be reading our output; the job ends all the same.
    awaits_last_output_ = true;
    phase_timer_ = loop_.after(last_output(), [this] { finish(); });
  }
  if (outcome_.failed()) ending_.after_failure();
}

/// Ends the job because of a signal.
void Driver::begin_ending(int signal) {
  ending_signal_ = signal;
  if (phase_ == Phase::kStarting) return finish();
  if (signal == SIGPIPE) return ending_.ask(SIGTERM);
  if (phase_ == Phase::kRunning)
    say("got signal " + std::to_string(signal) + " (" + ::strsignal(signal) +
        "), ending the job; once more kills it");
  ending_.ask(signal);
}

void Driver::finish() {
  if (phase_ == Phase::kFinishing) return;
  enter(Phase::kFinishing);
  ending_.stop();
  if (stdin_relay_) stdin_relay_->stop();
  for (HostAgent& agent : agents_) {
    agent.expect_signs_of_life(false);
    if (!agent.ready() && !agent.sweeping())
      agent.give_up(Status::aborted("the start was given up"));
  }
  DriverCommand command;
  command.mutable_finish();
  send_to_all(command);
  phase_timer_ = loop_.after(kFinish, [this] { give_agents_up(); });
  on_progress();
}

void Driver::give_agents_up() {
  for (HostAgent& agent : agents_) {
    if (agent.ended()) continue;
    if (!agent.sweeping())
      say("host " + agent.host().name +
          ": its agent does not end; processes of the job may be left there");
    agent.give_up(Status::timed_out("its agent does not end"));
  }
}

/// After the loop: nothing of the job is left but what we have to say.
int Driver::conclude() {
  // Agents that were given up may have left something here.
  end_descendants(strangers_, deadline_after(seconds(5)), [](pid_t, int) {});
  for (int rank = 0; rank < placement_.size; ++rank) display_.close(rank);
  int exit_code = start_exit_code_ != 0 ? start_exit_code_ : outcome_.exit_code();
  if (ending_signal_) {
    exit_code = 128 + *ending_signal_;
  } else if (start_exit_code_ == 0) {
    display_.say(outcome_.account([this](int rank) { return display_.last_lines(rank); }));
  }
  const Deadline deadline = ending_signal_ ? deadline_after(last_output()) : kNoDeadline;
  if (!display_.flush(deadline)) ::_exit(exit_code);  // the writer hangs and ends only with us
  return exit_code;
}

void Driver::send_to_all(const DriverCommand& command) {
  for (HostAgent& agent : agents_) agent.send(command);
}

}  // namespace

int run_driver(const Arguments& arguments, const Placement& placement,
               const Environment& environment) {
  SignalReader::block();
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
  keep_grpc();
  return Driver(arguments, placement, environment, std::move(display)).run();
}

}  // namespace allring
