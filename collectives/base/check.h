#pragma once

namespace allring {

/// Prints file, line, the condition and `what` to stderr, then aborts the process. For broken
/// invariants only; anything a user, a peer or the system can cause is a Status.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* what);

}  // namespace allring

/// Aborts, in release builds too, when an invariant of our own code does not hold.
#define ALLRING_CHECK(condition, what)                               \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::allring::check_failed(__FILE__, __LINE__, #condition, what); \
  } while (false)
