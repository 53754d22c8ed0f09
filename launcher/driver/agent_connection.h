#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/agent.pb.h"
#include "launcher/backends/agent_starter.h"
#include "launcher/driver/agent_call.h"
#include "launcher/event_loop.h"
#include "launcher/hosts.h"

namespace allring {

/// One host's agent as the driver sees it: the process that starts it, the wait for its marker, the
/// call, and the end. Belongs to the loop's thread, which must live as long as the job.
class AgentConnection {
 public:
  /// All run on the loop.
  struct Handlers {
    std::function<void(launcher::AgentEvent)> event;
    /// Once: the agent is gone, and so is what started it. ok after an agreed end; before the
    /// first event, why the agent did not start, in one line; else why it was lost (kTimedOut:
    /// by its silence).
    /// exit_code is what the job should end with if this is the cause.
    std::function<void(Status status, int exit_code)> ended;
    /// A line that the starter or the agent wrote to standard error after the start.
    std::function<void(std::string line)> words;
  };

  /// Starts the agent; blocks for no longer than it takes to run the starter.
  static Result<std::unique_ptr<AgentConnection>> start(const Host& host,
                                                        const AgentStarter& starter,
                                                        const std::string& remote_hvdrun,
                                                        const std::vector<std::string>& environment,
                                                        EventLoop& loop, Handlers handlers);
  ~AgentConnection();
  AgentConnection(const AgentConnection&) = delete;
  AgentConnection& operator=(const AgentConnection&) = delete;

  /// Queues a command; dropped if the agent is gone.
  void send(launcher::DriverCommand command);

  pid_t starter_pid() const { return pid_; }
  /// The starter has been reaped.
  void on_starter_ended(int wait_status);

  /// Gives the agent up: its starter is killed. `ended` follows.
  void give_up(Status reason);

  /// Begins or stops to count silence as a loss.
  void expect_signs_of_life(bool expected);

 private:
  AgentConnection(const Host& host, const std::string& by_hand, const std::string& remote_hvdrun,
                  EventLoop& loop, Handlers handlers);
  void read_marker();
  void begin_call();
  void read_words();
  void flush_words();
  void on_event(launcher::AgentEvent event);
  void on_call_ended(Status status);
  void settle();
  void finish(Status status, int exit_code);

  const Host host_;
  const std::string by_hand_;
  const std::string remote_hvdrun_;
  EventLoop& loop_;
  Handlers handlers_;

  pid_t pid_ = -1;
  std::optional<int> wait_status_;
  FileDescriptor socket_;  ///< until the call begins
  std::string received_;   ///< before the marker
  bool missing_ = false;   ///< the remote command found no hvdrun
  bool started_ = false;   ///< the first event has come
  bool finished_event_ = false;
  FileDescriptor words_pipe_;
  std::string words_;
  std::optional<AgentCall> call_;
  std::optional<Status> call_end_;
  std::optional<Status> given_up_;
  bool ended_ = false;
  EventLoop::TimerId settle_timer_ = 0;
  bool expects_signs_ = false;
  EventLoop::TimerId silence_timer_ = 0;
};

}  // namespace allring
