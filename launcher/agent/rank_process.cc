#include "launcher/agent/rank_process.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace allring {

namespace {

constexpr std::size_t kReadBytes = 128 << 10;
constexpr milliseconds kQuiet{500};

}  // namespace

RankProcess::RankProcess(int rank, EventLoop& loop, RankEvents& events)
    : rank_(rank), loop_(loop), events_(events) {
  outputs_[1].standard_error = true;
}

Result<std::unique_ptr<RankProcess>> RankProcess::start(int rank, ChildCommand command,
                                                        bool takes_input, EventLoop& loop,
                                                        RankEvents& events) {
  std::unique_ptr<RankProcess> process(new RankProcess(rank, loop, events));
  FileDescriptor child_ends[3];
  if (takes_input) {
    ALLRING_ASSIGN_OR_RETURN(Pipe pipe, make_pipe());
    child_ends[0] = std::move(pipe.read_end);
    process->input_ = std::move(pipe.write_end);
    set_nonblocking(process->input_.get());
  } else {
    ALLRING_ASSIGN_OR_RETURN(child_ends[0], open_null());
  }
  for (int i = 0; i < 2; ++i) {
    ALLRING_ASSIGN_OR_RETURN(Pipe pipe, make_pipe());
    set_nonblocking(pipe.read_end.get());
    process->outputs_[i].pipe = std::move(pipe.read_end);
    child_ends[1 + i] = std::move(pipe.write_end);
  }
  command.stdin_fd = child_ends[0].get();
  command.stdout_fd = child_ends[1].get();
  command.stderr_fd = child_ends[2].get();
  command.group = ChildCommand::Group::kProcessGroup;
  command.death_signal = SIGKILL;
  ALLRING_ASSIGN_OR_RETURN(process->pid_, start_child(command));
  for (Output& output : process->outputs_) process->watch(output);
  return process;
}

RankProcess::~RankProcess() {
  loop_.cancel(quiet_timer_);
  for (Output& output : outputs_) {
    if (output.pipe) loop_.unwatch(output.pipe.get());
  }
  close_input();
}

void RankProcess::watch(Output& output) {
  if (output.pipe) loop_.watch(output.pipe.get(), POLLIN, [this, &output] { read(output); });
}

void RankProcess::read_output(bool on) {
  if (on == reading_) return;
  reading_ = on;
  for (Output& output : outputs_) {
    if (!output.pipe) continue;
    if (on) {
      watch(output);
    } else {
      loop_.unwatch(output.pipe.get());
    }
  }
}

void RankProcess::read(Output& output) {
  std::string bytes(kReadBytes, '\0');
  const ssize_t got = ::read(output.pipe.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    end(output);
    return;
  }
  bytes.resize(static_cast<std::size_t>(got));
  if (exited_) arm_quiet_timer();
  events_.on_output(rank_, output.standard_error, std::move(bytes));
}

void RankProcess::end(Output& output) {
  loop_.unwatch(output.pipe.get());
  output.pipe.reset();
  if (!exited_ || outputs_[0].pipe || outputs_[1].pipe) return;
  loop_.cancel(quiet_timer_);
  events_.on_output_ended(rank_);
}

void RankProcess::on_exit() {
  exited_ = true;
  close_input();
  if (!outputs_[0].pipe && !outputs_[1].pipe) {
    events_.on_output_ended(rank_);
  } else {
    arm_quiet_timer();
  }
}

void RankProcess::arm_quiet_timer() {
  loop_.cancel(quiet_timer_);
  quiet_timer_ = loop_.after(kQuiet, [this] {
    if (!reading_) {
      arm_quiet_timer();  // nobody has looked
      return;
    }
    for (Output& output : outputs_) {
      if (output.pipe) end(output);
    }
  });
}

void RankProcess::write_input(std::string bytes) {
  if (!input_) return;
  input_queue_.push_back(std::move(bytes));
  flush_input();
}

void RankProcess::end_input() {
  input_ends_ = true;
  if (input_) flush_input();
}

void RankProcess::flush_input() {
  std::int64_t taken = 0;
  while (!input_queue_.empty()) {
    const std::string& front = input_queue_.front();
    const ssize_t written =
        ::write(input_.get(), front.data() + input_offset_, front.size() - input_offset_);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0) {
      close_input();  // the rank reads no more; without credit the driver stops reading too
      return;
    }
    taken += written;
    input_offset_ += static_cast<std::size_t>(written);
    if (input_offset_ == front.size()) {
      input_queue_.pop_front();
      input_offset_ = 0;
    }
  }
  if (taken > 0) events_.on_input_taken(taken);
  if (!input_queue_.empty()) {
    loop_.watch(input_.get(), POLLOUT, [this] { flush_input(); });
  } else if (input_ends_) {
    close_input();
  } else {
    loop_.unwatch(input_.get());
  }
}

void RankProcess::close_input() {
  if (!input_) return;
  loop_.unwatch(input_.get());
  input_.reset();
}

}  // namespace allring
