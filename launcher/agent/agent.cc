#include "launcher/agent/agent.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "allring_version.h"
#include "launcher/agent/agent_stream.h"
#include "launcher/agent/rank_process.h"
#include "launcher/agent/relayed_key_value.h"
#include "launcher/agent/secret_file.h"
#include "launcher/agent/stdio_bridge.h"
#include "launcher/environment.h"
#include "launcher/grpc_process.h"
#include "launcher/local_host.h"
#include "launcher/process_tree.h"
#include "launcher/protocol.h"
#include "runtime/rendezvous/store_server.h"

namespace allring {

namespace {

using launcher::AgentEvent;
using launcher::DriverCommand;

int usable_cores() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0
             ? CPU_COUNT(&set)
             : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

/// A TCP port that nobody uses now, for those who want one announced (torch's MASTER_PORT).
int free_tcp_port() {
  FileDescriptor socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address{};
  address.ss_family = AF_INET6;
  socklen_t size = sizeof(sockaddr_in6);
  if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    socket.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));  // no IPv6 here
    address = {};
    address.ss_family = AF_INET;
    size = sizeof(sockaddr_in);
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
  }
  size = sizeof address;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  // The port stands at the same place for both families.
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

bool is_folder(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

class Agent final : private RankEvents {
 public:
  explicit Agent(const Environment& environment) : host_environment_(environment) {}
  int run();

 private:
  void on_command(DriverCommand command);
  void on_signals();
  void start(const launcher::Start& start);
  Status start_ranks(const launcher::Start& start);
  Result<std::string> choose_folder(const launcher::Start& start);
  void signal_ranks(int number);
  void finish();
  void on_driver_gone();
  void on_reaped(pid_t pid, int wait_status);
  void end_everything();

  void on_output(int rank, bool standard_error, std::string bytes) override;
  void on_output_ended(int rank) override;
  void on_input_taken(std::int64_t bytes) override;
  void add_output_credit(std::int64_t bytes);

  void send(AgentEvent event) { stream_->send(std::move(event)); }
  void warn(std::string text);
  void beat();
  void expect_driver();

  const Environment& host_environment_;
  EventLoop loop_;
  FileDescriptor signals_;
  FileDescriptor connection_;  // only to see its end
  std::unique_ptr<AgentStream> stream_;

  std::optional<SecretFile> secret_;
  std::unique_ptr<RelayedKeyValueMap> keys_;
  std::unique_ptr<StoreServer> store_;
  std::map<int, std::unique_ptr<RankProcess>> ranks_;
  std::map<pid_t, int> rank_of_pid_;
  bool ending_signal_sent_ = false;
  std::int64_t output_credit_ = kOutputWindowBytes;
  bool output_paused_ = false;

  bool watches_driver_ = true;
  bool driver_pauses_ = false;
  EventLoop::TimerId silence_timer_ = 0;
  bool finishing_ = false;
  int exit_code_ = 1;
};

int Agent::run() {
  sigset_t handled;
  ::sigemptyset(&handled);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}) ::sigaddset(&handled, signal);
  ::pthread_sigmask(SIG_BLOCK, &handled, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_.reset(::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  keep_grpc();
  adopt_orphans();
  ::prctl(PR_SET_NAME, "allring-agent");  // so that `killall hvdrun` means the driver

  if (!write_all(1, kAgentMarker).ok()) return 1;
  Result<StdioBridge::Connection> connected = StdioBridge::connect();
  if (!connected.ok()) {
    std::fprintf(stderr, "hvdrun agent: %s\n", connected.status().message().c_str());
    return 1;
  }
  connection_.reset(::fcntl(connected->socket.get(), F_DUPFD_CLOEXEC, 3));
  stream_ = std::make_unique<AgentStream>(
      std::move(connected->socket), loop_,
      AgentStream::Handlers{[this](DriverCommand command) { on_command(std::move(command)); },
                            [this] { on_driver_gone(); }});
  keys_ =
      std::make_unique<RelayedKeyValueMap>([this](AgentEvent event) { send(std::move(event)); });

  loop_.watch(signals_.get(), POLLIN, [this] { on_signals(); });
  // Quicker and surer than gRPC's own notice, and there even before the call is.
  loop_.watch(connection_.get(), POLLRDHUP, [this] { on_driver_gone(); });
  expect_driver();
  beat();

  AgentEvent ready;
  ready.mutable_ready()->set_pid(::getpid());
  ready.mutable_ready()->set_hostname(own_hostname());
  ready.mutable_ready()->set_version(kVersion);
  ready.mutable_ready()->set_free_port(free_tcp_port());
  ready.mutable_ready()->set_cores(usable_cores());
  send(std::move(ready));
  loop_.run();

  end_everything();
  store_.reset();
  stream_.reset();
  return exit_code_;
}

void Agent::on_command(DriverCommand command) {
  if (command.has_heartbeat()) driver_pauses_ = command.heartbeat().pausing();
  if (command.has_start()) watches_driver_ = command.start().watch_driver();
  expect_driver();
  switch (command.command_case()) {
    case DriverCommand::kStart:
      start(command.start());
      break;
    case DriverCommand::kSignal:
      signal_ranks(command.signal().number());
      break;
    case DriverCommand::kInput:
      if (auto rank = ranks_.find(0); rank != ranks_.end()) {
        if (!command.input().bytes().empty())
          rank->second->write_input(std::move(*command.mutable_input()->mutable_bytes()));
        if (command.input().end()) rank->second->end_input();
      }
      break;
    case DriverCommand::kKeyFound:
      keys_->found(command.key_found().watch(), command.key_found().value());
      break;
    case DriverCommand::kOutputCredit:
      add_output_credit(command.output_credit().bytes());
      break;
    case DriverCommand::kHeartbeat:
      break;
    case DriverCommand::kSweep:
      if (!end_processes_with("ALLRING_JOB_ID=" + command.sweep().job_id(),
                              deadline_after(seconds(5))))
        warn("some processes of the job do not end although they were killed");
      break;
    case DriverCommand::kFinish:
      finish();
      break;
    case DriverCommand::COMMAND_NOT_SET:
      warn("the driver sent a command that this version of hvdrun does not know");
      break;
  }
}

void Agent::start(const launcher::Start& start) {
  AgentEvent event;
  if (Status status = start_ranks(start); status.ok()) {
    event.mutable_started();
  } else {
    end_everything();
    event.mutable_start_failed()->set_message(status.message());
  }
  send(std::move(event));
}

Status Agent::start_ranks(const launcher::Start& start) {
  if (start.argv().empty()) return Status::invalid_argument("no command was given");
  ALLRING_ASSIGN_OR_RETURN(secret_, SecretFile::make(start.secret()));
  ALLRING_ASSIGN_OR_RETURN(store_, StoreServer::listen("unix:@allring-" + start.job_id() + "-" +
                                                           std::to_string(::getpid()),
                                                       start.secret(), *keys_));
  output_credit_ = start.output_window_bytes();

  Environment environment;
  if (start.keep_host_environment()) environment = host_environment_;
  for (const std::string& entry : start.inherited_environment()) environment.set_entry(entry);

  ChildCommand command;
  ALLRING_ASSIGN_OR_RETURN(command.working_directory, choose_folder(start));
  command.argv.assign(start.argv().begin(), start.argv().end());

  RankIdentity identity;
  identity.size = start.world_size();
  identity.hosts = start.hosts();
  identity.host_index = start.host_index();
  identity.host = start.host();
  identity.job_id = start.job_id();
  identity.store_address = store_->address();
  identity.secret_file = secret_->path();
  identity.master_address = start.master_address();
  identity.master_port = start.master_port();
  identity.host_cores = usable_cores();
  for (const launcher::RankNumbers& numbers : start.ranks()) {
    identity.rank = numbers.rank();
    identity.local_rank = numbers.local_rank();
    identity.local_size = numbers.local_size();
    identity.cross_rank = numbers.cross_rank();
    identity.cross_size = numbers.cross_size();
    Environment own = environment;
    add_rank_variables(identity, &own);
    for (const std::string& entry : start.given_environment()) own.set_entry(entry);
    if (command.program.empty()) {
      ALLRING_ASSIGN_OR_RETURN(
          command.program,
          find_program(command.argv[0], own.find("PATH").value_or(""), command.working_directory));
    }
    command.environment = own.entries();
    ALLRING_ASSIGN_OR_RETURN(
        auto process, RankProcess::start(identity.rank, command, identity.rank == 0, loop_, *this));
    rank_of_pid_[process->pid()] = identity.rank;
    ranks_[identity.rank] = std::move(process);
  }
  return {};
}

Result<std::string> Agent::choose_folder(const launcher::Start& start) {
  const std::string& wanted = start.working_directory();
  if (is_folder(wanted)) return wanted;
  if (start.working_directory_is_given())
    return Status::invalid_argument("the folder of --wdir does not exist: " + wanted);
  const std::string home = host_environment_.find("HOME").value_or("");
  const std::string instead = is_folder(home) ? home : "/";
  warn("the folder " + wanted + " does not exist here; the ranks start in " + instead +
       " (--wdir names another)");
  return instead;
}

void Agent::signal_ranks(int number) {
  if (number == SIGINT || number == SIGTERM || number == SIGKILL || number == SIGQUIT ||
      number == SIGHUP)
    ending_signal_sent_ = true;
  // In a session without a terminal SIGTSTP would be ignored by some; a stop is what is meant.
  signal_descendants(::getpid(), number == SIGTSTP ? SIGSTOP : number);
}

void Agent::on_signals() {
  signalfd_siginfo info;
  bool child_ended = false;
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) {
      child_ended = true;
    } else {
      loop_.stop();  // somebody ends the agent itself, or the kernel says that the driver ended
    }
  }
  if (child_ended)
    reap_children([this](pid_t pid, int wait_status) { on_reaped(pid, wait_status); });
}

void Agent::on_reaped(pid_t pid, int wait_status) {
  auto found = rank_of_pid_.find(pid);
  if (found == rank_of_pid_.end()) return;  // an orphan of a rank
  const int rank = found->second;
  rank_of_pid_.erase(found);
  AgentEvent event;
  event.mutable_exited()->set_rank(rank);
  event.mutable_exited()->set_wait_status(wait_status);
  event.mutable_exited()->set_after_signal(ending_signal_sent_);
  send(std::move(event));
  ranks_.at(rank)->on_exit();
}

void Agent::on_output(int rank, bool standard_error, std::string bytes) {
  add_output_credit(-static_cast<std::int64_t>(bytes.size()));
  AgentEvent event;
  event.mutable_output()->set_rank(rank);
  event.mutable_output()->set_standard_error(standard_error);
  event.mutable_output()->set_time_us(
      std::chrono::duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
  event.mutable_output()->set_bytes(std::move(bytes));
  send(std::move(event));
}

void Agent::add_output_credit(std::int64_t bytes) {
  output_credit_ += bytes;
  const bool paused = output_credit_ <= 0;
  if (paused == output_paused_) return;
  output_paused_ = paused;
  for (auto& [rank, process] : ranks_) process->read_output(!paused);
}

void Agent::on_output_ended(int rank) {
  AgentEvent event;
  event.mutable_output_ended()->set_rank(rank);
  send(std::move(event));
}

void Agent::on_input_taken(std::int64_t bytes) {
  AgentEvent event;
  event.mutable_input_credit()->set_bytes(bytes);
  send(std::move(event));
}

void Agent::finish() {
  finishing_ = true;
  end_everything();
  AgentEvent event;
  event.mutable_finished();
  send(std::move(event));
  stream_->finish();
}

void Agent::on_driver_gone() {
  if (finishing_) exit_code_ = 0;
  loop_.stop();
}

void Agent::end_everything() {
  const bool ended =
      end_descendants({}, deadline_after(seconds(10)),
                      [this](pid_t pid, int wait_status) { on_reaped(pid, wait_status); });
  if (!ended) warn("some processes of the job do not end although they were killed");
}

void Agent::warn(std::string text) {
  AgentEvent event;
  event.mutable_warning()->set_text(std::move(text));
  send(std::move(event));
}

void Agent::beat() {
  AgentEvent event;
  event.mutable_heartbeat();
  send(std::move(event));
  loop_.after(kHeartbeatInterval, [this] { beat(); });
}

/// Counts the driver's silence anew.
void Agent::expect_driver() {
  loop_.cancel(silence_timer_);
  if (watches_driver_ && !driver_pauses_)
    silence_timer_ = loop_.after(kDriverSilence, [this] { on_driver_gone(); });
}

}  // namespace

int run_agent(const Environment& environment) { return Agent(environment).run(); }

}  // namespace allring
