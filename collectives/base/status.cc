#include "collectives/base/status.h"

#include <cerrno>
#include <cstring>

namespace allring {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kMismatch:
      return "mismatch";
    case StatusCode::kPeerLost:
      return "peer lost";
    case StatusCode::kTimedOut:
      return "timed out";
    case StatusCode::kAborted:
      return "aborted";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message)
    : rep_(std::make_shared<Rep>(Rep{code, std::move(message), -1})) {
  ALLRING_CHECK(code != StatusCode::kOk, "a failure needs a code");
}

const std::string& Status::message() const {
  static const std::string* const empty = new std::string;  // outlives every thread
  return rep_ ? rep_->message : *empty;
}

std::optional<int> Status::lost_rank() const {
  if (!rep_ || rep_->lost_rank < 0) return std::nullopt;
  return rep_->lost_rank;
}

std::string Status::to_string() const {
  if (ok()) return "ok";
  return std::string(status_code_name(code())) + ": " + message();
}

Status Status::with_prefix(std::string_view prefix) const {
  if (ok()) return {};
  Status result;
  result.rep_ =
      std::make_shared<Rep>(Rep{rep_->code, std::string(prefix) + rep_->message, rep_->lost_rank});
  return result;
}

Status Status::invalid_argument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
Status Status::mismatch(std::string message) { return {StatusCode::kMismatch, std::move(message)}; }
Status Status::peer_lost(int rank, std::string message) {
  Status result;
  result.rep_ = std::make_shared<Rep>(Rep{StatusCode::kPeerLost, std::move(message), rank});
  return result;
}
Status Status::timed_out(std::string message) {
  return {StatusCode::kTimedOut, std::move(message)};
}
Status Status::aborted(std::string message) { return {StatusCode::kAborted, std::move(message)}; }
Status Status::unsupported(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}
Status Status::out_of_memory(std::string message) {
  return {StatusCode::kOutOfMemory, std::move(message)};
}
Status Status::internal(std::string message) { return {StatusCode::kInternal, std::move(message)}; }

Status Status::from_errno(std::string_view what, int error, StatusCode otherwise) {
  const bool exhausted = error == ENOMEM || error == ENOSPC || error == EMFILE || error == ENFILE;
  return {exhausted ? StatusCode::kOutOfMemory : otherwise,
          std::string(what) + ": " + std::strerror(error)};
}

}  // namespace allring
