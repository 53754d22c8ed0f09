#include "collectives/base/status.h"

#include <catch2/catch.hpp>
#include <cerrno>

namespace allring {
namespace {

TEST_CASE("success costs a null pointer and says nothing") {
  const Status ok;
  REQUIRE(ok.ok());
  REQUIRE(ok.code() == StatusCode::kOk);
  REQUIRE(ok.message().empty());
  REQUIRE(ok.to_string() == "ok");
  REQUIRE_FALSE(ok.lost_rank());
  REQUIRE(ok.with_prefix("grad: ").ok());
  REQUIRE(sizeof(Status) <= 2 * sizeof(void*));
}

TEST_CASE("each factory has its code") {
  REQUIRE(Status::invalid_argument("x").code() == StatusCode::kInvalidArgument);
  REQUIRE(Status::mismatch("x").code() == StatusCode::kMismatch);
  REQUIRE(Status::peer_lost(1, "x").code() == StatusCode::kPeerLost);
  REQUIRE(Status::timed_out("x").code() == StatusCode::kTimedOut);
  REQUIRE(Status::aborted("x").code() == StatusCode::kAborted);
  REQUIRE(Status::unsupported("x").code() == StatusCode::kUnsupported);
  REQUIRE(Status::out_of_memory("x").code() == StatusCode::kOutOfMemory);
  REQUIRE(Status::internal("x").code() == StatusCode::kInternal);
}

TEST_CASE("the values of the codes are part of the C ABI") {
  const StatusCode codes[] = {
      StatusCode::kOk,          StatusCode::kInvalidArgument, StatusCode::kMismatch,
      StatusCode::kPeerLost,    StatusCode::kTimedOut,        StatusCode::kAborted,
      StatusCode::kUnsupported, StatusCode::kOutOfMemory,     StatusCode::kInternal};
  std::string names;
  for (int i = 0; i < 9; ++i) {
    REQUIRE(static_cast<int>(codes[i]) == i);
    names += std::string(status_code_name(codes[i])) + ";";
  }
  REQUIRE(names ==
          "ok;invalid argument;mismatch;peer lost;timed out;aborted;unsupported;out of memory;"
          "internal error;");
}

TEST_CASE("a failure keeps its rank under a prefix") {
  const Status lost = Status::peer_lost(3, "rank 3 (host b) closed its connection");
  REQUIRE(lost.lost_rank() == 3);
  const Status longer = lost.with_prefix("allreduce of grad: ");
  REQUIRE(longer.code() == StatusCode::kPeerLost);
  REQUIRE(longer.lost_rank() == 3);
  REQUIRE(longer.to_string() ==
          "peer lost: allreduce of grad: rank 3 (host b) closed its connection");
  REQUIRE(lost.message() == "rank 3 (host b) closed its connection");
  REQUIRE_FALSE(Status::peer_lost(-1, "someone").lost_rank());
}

TEST_CASE("errno becomes a message and, where memory or a limit ran out, its own code") {
  for (const int error : {ENOMEM, ENOSPC, EMFILE, ENFILE}) {
    REQUIRE(Status::from_errno("open", error).code() == StatusCode::kOutOfMemory);
  }
  const Status refused =
      Status::from_errno("connect to rank 1", ECONNREFUSED, StatusCode::kPeerLost);
  REQUIRE(refused.code() == StatusCode::kPeerLost);
  REQUIRE(refused.message() == "connect to rank 1: Connection refused");
  REQUIRE(Status::from_errno("x", EINVAL).code() == StatusCode::kInternal);
}

Result<int> half(int value) {
  if (value % 2 != 0) return Status::invalid_argument("odd");
  return value / 2;
}

Result<int> quarter(int value) {
  ALLRING_ASSIGN_OR_RETURN(const int once, half(value));
  ALLRING_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

Status check_quarter(int value) {
  ALLRING_RETURN_IF_ERROR(quarter(value).status());
  return {};
}

TEST_CASE("results carry a value or the reason why there is none") {
  REQUIRE(quarter(12).value() == 3);
  REQUIRE(*quarter(12) == 3);
  REQUIRE(quarter(12).status().ok());
  REQUIRE_FALSE(quarter(6).ok());
  REQUIRE(quarter(6).status().message() == "odd");
  REQUIRE(check_quarter(4).ok());
  REQUIRE(check_quarter(5).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a result hands over what cannot be copied") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> value = std::move(result).value();
  REQUIRE(*value == 7);
}

}  // namespace
}  // namespace allring
