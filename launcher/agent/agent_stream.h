#pragma once

#include <functional>
#include <memory>

#include "launcher/agent.pb.h"
#include "launcher/event_loop.h"
#include "launcher/file_descriptor.h"

namespace allring {

/// The agent's end of the one gRPC call that its driver makes.
class AgentStream {
 public:
  /// Both run on the loop.
  struct Handlers {
    std::function<void(launcher::DriverCommand)> command;
    /// The call has ended: after finish(), or because the driver is gone. Called once.
    std::function<void()> closed;
  };

  /// Serves a driver at the other end of `socket`, a connected stream socket. Nothing listens.
  AgentStream(FileDescriptor socket, EventLoop& loop, Handlers handlers);
  /// Ends the call if it is still there; blocks until gRPC has let go of it.
  ~AgentStream();
  AgentStream(const AgentStream&) = delete;
  AgentStream& operator=(const AgentStream&) = delete;

  /// Queues an event; before the call has begun too. Thread-safe, does not block.
  void send(launcher::AgentEvent event);

  /// Ends the call in good order once everything sent is out.
  void finish();

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace allring
