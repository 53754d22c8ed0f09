#include "launcher/driver/host_agent.h"

#include <cmath>
#include <utility>

#include "launcher/backends/agent_starter.h"
#include "launcher/protocol.h"

namespace allring {

using launcher::AgentEvent;
using launcher::DriverCommand;

HostAgent::HostAgent(const PlacedHost& placed, const Arguments& arguments,
                     const Environment& environment, EventLoop& loop, Handlers handlers)
    : placed_(placed),
      arguments_(arguments),
      environment_(environment),
      loop_(loop),
      handlers_(std::move(handlers)) {}

Result<AgentStarter> HostAgent::starter() const {
  if (host().local) return local_starter();
  return ssh_starter(host(),
                     {arguments_.ssh_port, arguments_.ssh_identity_file, arguments_.ssh_args,
                      arguments_.remote_hvdrun},
                     environment_.find("PATH").value_or(""));
}

void HostAgent::start() {
  Result<AgentStarter> chosen = starter();
  if (!chosen.ok()) return on_ended(chosen.status(), 2);
  if (arguments_.verbose) {
    std::string line = "starting its agent:";
    for (const std::string& word : chosen->argv) line += " " + word;
    handlers_.words(*this, line);
  }
  Result<std::unique_ptr<AgentConnection>> connection = AgentConnection::start(
      host(), *chosen, arguments_.remote_hvdrun, environment_.entries(), loop_,
      {[this](AgentEvent event) { on_event(std::move(event)); },
       [this](Status status, int exit_code) { on_ended(std::move(status), exit_code); },
       [this](const std::string& line) { handlers_.words(*this, line); }});
  if (!connection.ok()) return on_ended(connection.status(), 1);
  connection_ = std::move(connection).value();
}

void HostAgent::on_event(AgentEvent event) {
  if (event.has_heartbeat()) return;
  if (event.has_ready()) {
    ready_ = true;
    free_port_ = event.ready().free_port();
    if (sweeping()) {
      DriverCommand sweep;
      sweep.mutable_sweep()->set_job_id(sweep_job_id_);
      send(std::move(sweep));
      DriverCommand finish;
      finish.mutable_finish();
      send(std::move(finish));
    }
  }
  handlers_.event(*this, std::move(event));
}

void HostAgent::on_ended(Status status, int exit_code) {
  ended_ = true;
  handlers_.ended(*this, std::move(status), exit_code);
}

void HostAgent::send(DriverCommand command) {
  if (connection_) connection_->send(std::move(command));
}

void HostAgent::credit_output(std::int64_t bytes) {
  uncredited_bytes_ += bytes;
  if (uncredited_bytes_ < kOutputWindowBytes / 4) return;
  DriverCommand command;
  command.mutable_output_credit()->set_bytes(uncredited_bytes_);
  uncredited_bytes_ = 0;
  send(std::move(command));
}

void HostAgent::expect_signs_of_life(bool expected) {
  if (connection_) connection_->expect_signs_of_life(expected && !host().local);
}

void HostAgent::give_up(Status reason) {
  if (connection_) connection_->give_up(std::move(reason));
}

void HostAgent::on_starter_ended(int wait_status) { connection_->on_starter_ended(wait_status); }

void HostAgent::sweep(const std::string& job_id) {
  sweep_job_id_ = job_id;
  ready_ = false;
  ended_ = false;
  loop_.post([this] {  // later, as the connection that this ends may be calling us
    connection_.reset();
    start();
  });
}

std::string HostAgent::describe_silence(double seconds) const {
  std::string line = "host " + host().name + ": no answer within --start-timeout (" +
                     std::to_string(std::lround(seconds)) + " s)";
  Result<AgentStarter> chosen = starter();
  if (chosen.ok() && !chosen->by_hand.empty()) line += "; try: " + chosen->by_hand;
  return line;
}

}  // namespace allring
