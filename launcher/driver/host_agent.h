#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "collectives/base/status.h"
#include "launcher/agent.pb.h"
#include "launcher/arguments.h"
#include "launcher/driver/agent_connection.h"
#include "launcher/environment.h"
#include "launcher/event_loop.h"
#include "launcher/placement.h"

namespace allring {

/// One host of the job with its agent, and what the driver knows of it. Belongs to the loop's
/// thread; stays where it is made.
class HostAgent {
 public:
  /// All run on the loop.
  struct Handlers {
    /// Every event of the agent's but Heartbeat.
    std::function<void(HostAgent&, launcher::AgentEvent)> event;
    /// The agent is gone, or could not be started: see AgentConnection::Handlers.
    std::function<void(HostAgent&, Status, int exit_code)> ended;
    std::function<void(HostAgent&, const std::string& line)> words;
  };

  /// The references must outlive it.
  HostAgent(const PlacedHost& placed, const Arguments& arguments, const Environment& environment,
            EventLoop& loop, Handlers handlers);
  HostAgent(const HostAgent&) = delete;
  HostAgent& operator=(const HostAgent&) = delete;

  const PlacedHost& placed() const { return placed_; }
  const Host& host() const { return placed_.host; }
  bool ready() const { return ready_; }
  bool ended() const { return ended_; }
  int free_port() const { return free_port_; }
  /// Of what brought the agent to life; -1 if there is nothing.
  pid_t starter_pid() const { return connection_ ? connection_->starter_pid() : -1; }

  /// Has the agent started, by ssh or here. Handlers::ended may come from within.
  void start();
  void send(launcher::DriverCommand command);
  /// A stretch of its output has been shown; tells the agent when it is worth a message.
  void credit_output(std::int64_t bytes);
  /// Counts silence of a remote agent as its loss, or not.
  void expect_signs_of_life(bool expected);
  void give_up(Status reason);
  void on_starter_ended(int wait_status);

  /// After a loss: starts another agent there, has it kill what is left of the job, and ends it.
  /// Handlers::ended comes again, and until then ended() is false. May be called from within it.
  void sweep(const std::string& job_id);
  bool sweeping() const { return !sweep_job_id_.empty(); }

  /// One line for a host that did not answer within the time it had.
  std::string describe_silence(double seconds) const;

 private:
  Result<AgentStarter> starter() const;
  void on_event(launcher::AgentEvent event);
  void on_ended(Status status, int exit_code);

  const PlacedHost& placed_;
  const Arguments& arguments_;
  const Environment& environment_;
  EventLoop& loop_;
  const Handlers handlers_;
  std::unique_ptr<AgentConnection> connection_;
  bool ready_ = false;
  bool ended_ = false;
  int free_port_ = 0;
  std::int64_t uncredited_bytes_ = 0;
  std::string sweep_job_id_;
};

}  // namespace allring
