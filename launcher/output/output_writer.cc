#include "launcher/output/output_writer.h"

#include <unistd.h>

#include <utility>

#include "collectives/base/thread.h"
#include "launcher/file_descriptor.h"

namespace allring {

OutputWriter::OutputWriter(std::function<void(OutputStream, Status)> failed)
    : failed_(std::move(failed)), thread_(start_thread("output-writer", [this] { run(); })) {}

OutputWriter::~OutputWriter() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void OutputWriter::write(OutputStream stream, std::string text, std::function<void()> written) {
  std::lock_guard lock(mutex_);
  items_.push_back({stream, std::move(text), std::move(written)});
  changed_.notify_all();
}

bool OutputWriter::flush(Deadline deadline) {
  std::unique_lock lock(mutex_);
  auto idle = [this] { return items_.empty() && !writing_; };
  if (deadline == kNoDeadline) {
    changed_.wait(lock, idle);
    return true;
  }
  return changed_.wait_until(lock, deadline, idle);
}

void OutputWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !items_.empty(); });
    if (stopped_) return;
    Item item = std::move(items_.front());
    items_.pop_front();
    writing_ = true;
    lock.unlock();
    bool& broken = broken_[item.stream == OutputStream::kStderr];
    if (!broken) {
      const int fd = item.stream == OutputStream::kStdout ? STDOUT_FILENO : STDERR_FILENO;
      if (Status status = write_all(fd, item.text); !status.ok()) {
        broken = true;
        failed_(item.stream, status);
      }
    }
    if (item.written) item.written();
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
}

}  // namespace allring
