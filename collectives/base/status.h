#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "collectives/base/check.h"

namespace allring {

/// What the caller can do about a failure. The values are part of the C ABI.
enum class StatusCode : std::int32_t {
  kOk = 0,
  kInvalidArgument = 1,  ///< this call is wrong by itself: fix the call
  kMismatch = 2,         ///< ranks submitted different things under one name: fix the program
  kPeerLost = 3,         ///< a rank died, froze or was cut off: restart or re-rendezvous
  kTimedOut = 4,         ///< a deadline passed: look at the ranks that the message names
  kAborted = 5,          ///< given up because of an earlier failure or a shutdown
  kUnsupported = 6,      ///< not possible in this build or on this system
  kOutOfMemory = 7,      ///< memory, descriptors or another system limit: raise it
  kInternal = 8,         ///< a fault of ours: report it
};

/// "invalid argument", "peer lost", ...
std::string_view status_code_name(StatusCode code);

/// The outcome of an operation; null inside means success, so success costs one pointer.
/// Copyable, immutable, thread-compatible.
class [[nodiscard]] Status {
 public:
  Status() = default;
  /// REQUIRES: code != kOk.
  Status(StatusCode code, std::string message);

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  /// Says who, which tensor, expected, got and what to do next; empty when ok().
  const std::string& message() const;
  /// The lost rank, for kPeerLost, if known.
  std::optional<int> lost_rank() const;
  /// "peer lost: rank 2 (host b) ..." or "ok".
  std::string to_string() const;
  /// The same code and rank with `prefix` before the message. ok() stays ok().
  Status with_prefix(std::string_view prefix) const;

  static Status invalid_argument(std::string message);
  static Status mismatch(std::string message);
  static Status peer_lost(int rank, std::string message);
  static Status timed_out(std::string message);
  static Status aborted(std::string message);
  static Status unsupported(std::string message);
  static Status out_of_memory(std::string message);
  static Status internal(std::string message);
  /// From errno: `what` then strerror. ENOMEM, ENOSPC, EMFILE and ENFILE become kOutOfMemory,
  /// everything else `otherwise`.
  static Status from_errno(std::string_view what, int error,
                           StatusCode otherwise = StatusCode::kInternal);

 private:
  struct Rep {
    StatusCode code;
    std::string message;
    int lost_rank = -1;
  };
  std::shared_ptr<const Rep> rep_;
};

/// A value or the reason why there is none. value() on a failure is a broken invariant.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit on purpose
  Result(Status status) : state_(std::move(status)) {
    ALLRING_CHECK(!std::get<Status>(state_).ok(), "a Result needs a value or a failure");
  }

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }
  T& value() & {
    ALLRING_CHECK(ok(), "value() of a failed Result");
    return std::get<T>(state_);
  }
  const T& value() const& {
    ALLRING_CHECK(ok(), "value() of a failed Result");
    return std::get<T>(state_);
  }
  T&& value() && {
    ALLRING_CHECK(ok(), "value() of a failed Result");
    return std::get<T>(std::move(state_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace allring

#define ALLRING_CONCAT_(a, b) a##b
#define ALLRING_CONCAT(a, b) ALLRING_CONCAT_(a, b)

/// Returns from the enclosing function when `expression` (a Status) is a failure.
#define ALLRING_RETURN_IF_ERROR(expression)                                                   \
  do {                                                                                        \
    if (::allring::Status allring_status_ = (expression); !allring_status_.ok()) [[unlikely]] \
      return allring_status_;                                                                 \
  } while (false)

/// `ALLRING_ASSIGN_OR_RETURN(auto x, f())`: x = value of f(), or return its failure.
#define ALLRING_ASSIGN_OR_RETURN(declaration, expression) \
  ALLRING_ASSIGN_OR_RETURN_(ALLRING_CONCAT(allring_result_, __LINE__), declaration, expression)
#define ALLRING_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                      \
  if (!result.ok()) [[unlikely]]                                   \
    return result.status();                                        \
  declaration = std::move(result).value()
