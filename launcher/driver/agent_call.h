#pragma once

#include <functional>
#include <memory>

#include "collectives/base/status.h"
#include "launcher/agent.pb.h"
#include "launcher/event_loop.h"
#include "launcher/file_descriptor.h"

namespace allring {

/// The driver's end of the one gRPC call to an agent. Belongs to the loop's thread.
class AgentCall {
 public:
  /// Both run on the loop.
  struct Handlers {
    std::function<void(launcher::AgentEvent)> event;
    /// The call has ended: ok if the agent ended it. Called once.
    std::function<void(Status)> ended;
  };

  /// Begins the call over `socket`, a connected stream socket at whose other end the agent serves.
  AgentCall(FileDescriptor socket, EventLoop& loop, Handlers handlers);
  /// Cancels the call if it is still there; blocks until gRPC has let go of it.
  ~AgentCall();
  AgentCall(const AgentCall&) = delete;
  AgentCall& operator=(const AgentCall&) = delete;

  /// Queues a command; dropped if the call has ended. Does not block.
  void send(launcher::DriverCommand command);

 private:
  class Reactor;
  std::unique_ptr<Reactor> reactor_;
};

}  // namespace allring
