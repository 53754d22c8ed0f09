#include "launcher/driver/agent_call.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "launcher/agent.grpc.pb.h"
#include "launcher/message_queue.h"

namespace allring {

using launcher::AgentEvent;
using launcher::DriverCommand;

/// gRPC runs the On... functions on threads of its own.
class AgentCall::Reactor final : public grpc::ClientBidiReactor<DriverCommand, AgentEvent> {
 public:
  Reactor(FileDescriptor socket, EventLoop& loop, Handlers handlers)
      : loop_(loop), handlers_(std::move(handlers)) {
    set_nonblocking(socket.get());
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    // Each agent is its own server, though all have the same target here.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomInsecureChannelFromFd("agent", socket.release(), arguments);
    stub_ = launcher::HostAgent::NewStub(channel_);
    stub_->async()->Run(&context_, this);
    AddHold();  // commands are sent from outside of gRPC's own calls
    StartRead(&event_);
    StartCall();
  }

  ~Reactor() override {
    context_.TryCancel();
    release();
    std::unique_lock lock(mutex_);
    done_changed_.wait(lock, [this] { return done_; });
  }

  void send(DriverCommand command) {
    if (const DriverCommand* next = queue_.push(std::move(command))) StartWrite(next);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      loop_.post([this] { release(); });
      return;
    }
    loop_.post([this, event = std::make_shared<AgentEvent>(std::move(event_))] {
      handlers_.event(std::move(*event));
    });
    event_ = AgentEvent();
    StartRead(&event_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return;  // the read fails too
    if (const DriverCommand* next = queue_.written()) StartWrite(next);
  }

  void OnDone(const grpc::Status& status) override {
    loop_.post([this, status] {
      handlers_.ended(status.ok() ? Status() : Status::peer_lost(-1, status.error_message()));
    });
    std::lock_guard lock(mutex_);
    done_ = true;
    done_changed_.notify_all();
  }

  /// Nothing will be sent any more. On the loop's thread.
  void release() {
    if (released_) return;
    released_ = true;
    queue_.close();
    RemoveHold();
  }

  EventLoop& loop_;
  Handlers handlers_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<launcher::HostAgent::Stub> stub_;
  grpc::ClientContext context_;
  AgentEvent event_;
  MessageQueue<DriverCommand> queue_;
  bool released_ = false;

  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
};

AgentCall::AgentCall(FileDescriptor socket, EventLoop& loop, Handlers handlers)
    : reactor_(std::make_unique<Reactor>(std::move(socket), loop, std::move(handlers))) {}

AgentCall::~AgentCall() = default;

void AgentCall::send(DriverCommand command) { reactor_->send(std::move(command)); }

}  // namespace allring
