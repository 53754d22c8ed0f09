#include "bindings/c/last_error.h"

#include <algorithm>
#include <cstring>

namespace allring {

namespace {

// Plain memory, so that it outlives every destructor of the thread and of the process.
struct LastError {
  char message[8192];
  int rank;
};
thread_local LastError last = {"no error", -1};

}  // namespace

int record(const Status& status) noexcept {
  if (status.ok()) return 0;
  const std::string& message = status.message();
  const std::size_t length = std::min(message.size(), sizeof last.message - 1);
  std::memcpy(last.message, message.data(), length);
  last.message[length] = '\0';
  last.rank = status.lost_rank().value_or(-1);
  return static_cast<int>(status.code());
}

const char* recorded_message() noexcept { return last.message; }

int recorded_rank() noexcept { return last.rank; }

}  // namespace allring
