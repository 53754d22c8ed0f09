#include "launcher/agent/agent_stream.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "collectives/base/check.h"
#include "launcher/agent.grpc.pb.h"
#include "launcher/message_queue.h"

namespace allring {

using launcher::AgentEvent;
using launcher::DriverCommand;

namespace {

/// The one call. gRPC runs the On... functions on threads of its own.
class Call final : public grpc::ServerBidiReactor<DriverCommand, AgentEvent> {
 public:
  Call(EventLoop& loop, AgentStream::Handlers handlers)
      : loop_(loop), handlers_(std::move(handlers)) {}

  void begin() { StartRead(&command_); }

  void send(AgentEvent event) {
    if (const AgentEvent* next = queue_.push(std::move(event))) StartWrite(next);
  }

  void finish() {
    if (queue_.close()) end(grpc::Status::OK);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      lose();
      return;
    }
    loop_.post([this, command = std::make_shared<DriverCommand>(std::move(command_))] {
      handlers_.command(std::move(*command));
    });
    command_ = DriverCommand();
    StartRead(&command_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      queue_.close();
      end(grpc::Status::CANCELLED);
      return;
    }
    if (const AgentEvent* next = queue_.written()) {
      StartWrite(next);
    } else if (queue_.closed()) {
      end(grpc::Status::OK);
    }
  }

  void OnCancel() override { lose(); }

  void OnDone() override {
    loop_.post([this] { handlers_.closed(); });
  }

  // A write that is under way fails soon, and then ends the call.
  void lose() {
    if (queue_.close()) end(grpc::Status::CANCELLED);
  }

  void end(const grpc::Status& status) {
    if (!ended_.exchange(true)) Finish(status);
  }

  EventLoop& loop_;
  AgentStream::Handlers handlers_;
  DriverCommand command_;
  MessageQueue<AgentEvent> queue_;
  std::atomic<bool> ended_ = false;
};

/// Refuses a second call; a driver never makes one.
class Refusal final : public grpc::ServerBidiReactor<DriverCommand, AgentEvent> {
 public:
  Refusal() { Finish(grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "the job's call is there")); }
  void OnDone() override { delete this; }
};

}  // namespace

class AgentStream::Service final : public launcher::HostAgent::CallbackService {
 public:
  Service(FileDescriptor socket, EventLoop& loop, Handlers handlers)
      : call_(loop, std::move(handlers)) {
    grpc::ServerBuilder builder;
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    server_ = builder.BuildAndStart();
    ALLRING_CHECK(server_ != nullptr, "gRPC server without a port");
    set_nonblocking(socket.get());
    grpc::AddInsecureChannelFromFd(server_.get(), socket.release());
  }

  ~Service() override {
    // An unfinished call is cancelled when the time is up.
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  grpc::ServerBidiReactor<DriverCommand, AgentEvent>* Run(
      grpc::CallbackServerContext* /*context*/) override {
    if (called_.exchange(true)) return new Refusal;
    call_.begin();
    return &call_;
  }

  Call& call() { return call_; }

 private:
  Call call_;
  std::atomic<bool> called_ = false;
  std::unique_ptr<grpc::Server> server_;
};

AgentStream::AgentStream(FileDescriptor socket, EventLoop& loop, Handlers handlers)
    : service_(std::make_unique<Service>(std::move(socket), loop, std::move(handlers))) {}

AgentStream::~AgentStream() = default;

void AgentStream::send(AgentEvent event) { service_->call().send(std::move(event)); }

void AgentStream::finish() { service_->call().finish(); }

}  // namespace allring
