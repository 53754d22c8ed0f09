#pragma once

#include <functional>

#include "launcher/event_loop.h"
#include "launcher/file_descriptor.h"

namespace allring {

/// Hands the signals that a driver takes to its loop: those that end a job, those that are passed
/// on to the ranks, and SIGCHLD. Signals that hvdrun was started with ignored, as nohup does with
/// SIGHUP, stay so. Belongs to the loop's thread.
class SignalReader {
 public:
  /// Blocks the signals in the calling thread and in those that it starts later; to be called
  /// before any other thread exists.
  static void block();

  /// @param got called on the loop for each signal, once for several of a kind.
  SignalReader(EventLoop& loop, std::function<void(int number)> got);
  ~SignalReader();
  SignalReader(const SignalReader&) = delete;
  SignalReader& operator=(const SignalReader&) = delete;

  /// INT, TERM, HUP, QUIT.
  static bool ends_jobs(int number);

 private:
  EventLoop& loop_;
  FileDescriptor fd_;
};

}  // namespace allring
