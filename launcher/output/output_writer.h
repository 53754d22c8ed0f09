#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "launcher/output/output_mux.h"

namespace allring {

/// Writes to standard output and error from a thread of its own, so that a reader that is slow or
/// stopped holds up nothing else. Thread-safe. Who queues bounds the memory: see `written`.
class OutputWriter {
 public:
  /// @param failed called once per stream, on the writer's thread, when it can be written to no
  ///        more (kPeerLost: nobody reads it). Later texts for the stream are dropped, and count as
  ///        written.
  explicit OutputWriter(std::function<void(OutputStream, Status)> failed);
  /// Drops what is not written yet, except for the write that is under way.
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  /// Queues a text. @param written called on the writer's thread when it is out; may be empty.
  void write(OutputStream stream, std::string text, std::function<void()> written = {});

  /// Blocks until everything is out. @return whether it was before the deadline.
  bool flush(Deadline deadline);

 private:
  struct Item {
    OutputStream stream;
    std::string text;
    std::function<void()> written;
  };

  void run();

  const std::function<void(OutputStream, Status)> failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool writing_ = false;
  bool stopped_ = false;
  bool broken_[2] = {false, false};
  std::thread thread_;
};

}  // namespace allring
