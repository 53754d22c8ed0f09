#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/base/status.h"
#include "launcher/child_process.h"
#include "launcher/event_loop.h"

namespace allring {

/// What an agent does with what its ranks write and read. All run on the loop.
class RankEvents {
 public:
  virtual ~RankEvents() = default;
  virtual void on_output(int rank, bool standard_error, std::string bytes) = 0;
  /// The process has ended and its output has been read to the end.
  virtual void on_output_ended(int rank) = 0;
  /// So many bytes of input have reached the process.
  virtual void on_input_taken(std::int64_t bytes) = 0;
};

/// One rank on this host: a process with pipes to its standard descriptors. Belongs to the loop's
/// thread, which starts the process and must live as long as the rank: the kernel kills the rank
/// when that thread ends.
class RankProcess {
 public:
  /// Starts the process.
  /// @param command what to run; its descriptors are filled in here.
  /// @param takes_input whether write_input() will be used; else the rank reads /dev/null.
  static Result<std::unique_ptr<RankProcess>> start(int rank, ChildCommand command,
                                                    bool takes_input, EventLoop& loop,
                                                    RankEvents& events);
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }

  /// Reads output (true), or lets it wait in the pipes, where it stops the rank when they are full.
  void read_output(bool on);

  void write_input(std::string bytes);
  /// The rank sees the end of its input when it has read what was written.
  void end_input();

  /// The process has been reaped. What is left in the pipes is read; a pipe that some child of the
  /// rank keeps open is given up once it has been quiet for half a second.
  void on_exit();

 private:
  RankProcess(int rank, EventLoop& loop, RankEvents& events);

  struct Output {
    FileDescriptor pipe;
    bool standard_error = false;
  };

  void watch(Output& output);
  void read(Output& output);
  void end(Output& output);
  void arm_quiet_timer();
  void flush_input();
  void close_input();

  const int rank_;
  EventLoop& loop_;
  RankEvents& events_;
  pid_t pid_ = -1;
  Output outputs_[2];
  bool reading_ = true;
  bool exited_ = false;
  EventLoop::TimerId quiet_timer_ = 0;

  FileDescriptor input_;
  std::deque<std::string> input_queue_;
  std::size_t input_offset_ = 0;
  bool input_ends_ = false;
};

}  // namespace allring
