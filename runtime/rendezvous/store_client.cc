#include "runtime/rendezvous/store_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "collectives/base/thread.h"
#include "runtime/rendezvous/store_connect.h"

namespace allring {

Result<std::unique_ptr<StoreClient>> StoreClient::connect(const Settings& settings,
                                                          Deadline deadline) {
  ALLRING_ASSIGN_OR_RETURN(Fd stop, make_event());
  ALLRING_ASSIGN_OR_RETURN(
      StoreLink link, connect_store(settings.candidates, settings.secret, settings.rank, deadline));
  return std::unique_ptr<StoreClient>(new StoreClient(
      std::move(link.fd), std::move(stop), std::move(link.address), settings.request_timeout));
}

StoreClient::StoreClient(Fd fd, Fd stop, std::string address, nanoseconds request_timeout)
    : fd_(std::move(fd)),
      stop_(std::move(stop)),
      address_(std::move(address)),
      request_timeout_(request_timeout),
      thread_(start_thread("allring-kv", [this] { read_answers(); })) {}

StoreClient::~StoreClient() {
  signal_event(stop_.get());
  thread_.join();
}

Status StoreClient::put(std::string_view key, std::string_view value) {
  if (key.size() > kLongestStoreKey || value.size() > kLargestStoreFrame - kLongestStoreKey - 16)
    return Status::invalid_argument("a store entry of " + std::to_string(key.size()) + " + " +
                                    std::to_string(value.size()) + " bytes is too large");
  return request({{StoreFrameType::kPut, 0, key, value}});
}

Status StoreClient::remove(std::string_view key) {
  return request({{StoreFrameType::kRemove, 0, key, {}}});
}

Status StoreClient::put_each(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::vector<StoreFrame> frames;
  for (const auto& [key, value] : entries) frames.push_back({StoreFrameType::kPut, 0, key, value});
  return request(std::move(frames));
}

Status StoreClient::remove_each(const std::vector<std::string>& keys) {
  std::vector<StoreFrame> frames;
  for (const std::string& key : keys) frames.push_back({StoreFrameType::kRemove, 0, key, {}});
  return request(std::move(frames));
}

Result<std::string> StoreClient::wait(std::string_view key, Deadline deadline) {
  ALLRING_ASSIGN_OR_RETURN(auto values, wait_each({std::string(key)}, deadline));
  if (values.front()) return *std::move(values.front());
  return Status::timed_out("no rank has put \"" + std::string(key) + "\" into the store at " +
                           address_ + " in time");
}

Result<std::vector<std::optional<std::string>>> StoreClient::wait_each(
    const std::vector<std::string>& keys, Deadline deadline) {
  std::vector<std::uint32_t> ids;
  for (const std::string& key : keys) {
    ids.push_back(expect());
    // A server that is alive takes this at once, whatever the caller's deadline.
    ALLRING_RETURN_IF_ERROR(
        send({StoreFrameType::kWait, ids.back(), key, {}}, deadline_after(request_timeout_)));
  }
  std::vector<std::optional<std::string>> values;
  for (const std::uint32_t id : ids) {
    ALLRING_ASSIGN_OR_RETURN(auto value, answer(id, deadline));
    if (!value)
      ALLRING_RETURN_IF_ERROR(
          send({StoreFrameType::kCancel, id, {}, {}}, deadline_after(request_timeout_)));
    values.push_back(std::move(value));
  }
  return values;
}

Status StoreClient::request(std::vector<StoreFrame> frames) {
  const Deadline deadline = deadline_after(request_timeout_);
  for (StoreFrame& frame : frames) {
    frame.id = expect();
    ALLRING_RETURN_IF_ERROR(send(frame, deadline));
  }
  for (const StoreFrame& frame : frames) {
    ALLRING_ASSIGN_OR_RETURN(const auto done, answer(frame.id, deadline));
    if (!done) return Status::timed_out("the store at " + address_ + " does not answer");
  }
  return {};
}

std::uint32_t StoreClient::expect() {
  std::lock_guard lock(mutex_);
  const std::uint32_t id = next_id_++;
  answers_[id];
  return id;
}

Status StoreClient::send(const StoreFrame& frame, Deadline deadline) {
  const std::string bytes = frame.encode();
  std::lock_guard lock(sending_);
  Status status = write_full(fd_.get(), std::as_bytes(std::span(bytes)), deadline, stop_.get());
  // What has gone out may be half a frame.
  if (!status.ok()) fail(status);
  return status.with_prefix("store at " + address_ + ": ");
}

Result<std::optional<std::string>> StoreClient::answer(std::uint32_t id, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto found = answers_.find(id);
  const auto settled = [&] { return found->second.arrived || !failure_.ok(); };
  if (deadline == kNoDeadline) {
    arrived_.wait(lock, settled);
  } else {
    arrived_.wait_until(lock, deadline, settled);
  }
  Answer answer = std::move(found->second);
  answers_.erase(found);
  if (answer.arrived) return std::optional(std::move(answer.value));
  if (!failure_.ok()) return failure_;
  return std::optional<std::string>();
}

void StoreClient::read_answers() {
  for (;;) {
    Status status = wait_ready(fd_.get(), POLLIN, kNoDeadline, stop_.get());
    if (status.code() == StatusCode::kAborted) return;
    if (status.ok()) status = read_once();
    if (!status.ok()) return fail(status);
  }
}

Status StoreClient::read_once() {
  std::array<char, 64 << 10> bytes;
  const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0) return Status::from_errno("its connection broke", errno, StatusCode::kPeerLost);
  if (got == 0) return Status::peer_lost(-1, "it has closed the connection");
  reader_.append({bytes.data(), static_cast<std::size_t>(got)});
  for (;;) {
    ALLRING_ASSIGN_OR_RETURN(const auto body, reader_.next());
    if (!body) return {};
    ALLRING_ASSIGN_OR_RETURN(const StoreFrame frame, StoreFrame::parse(*body));
    take(frame);
  }
}

void StoreClient::take(const StoreFrame& frame) {
  std::lock_guard lock(mutex_);
  // An answer that crossed with our kCancel is wanted by nobody.
  const auto found = answers_.find(frame.id);
  if (found == answers_.end()) return;
  found->second.value = frame.value;
  found->second.arrived = true;
  arrived_.notify_all();
}

void StoreClient::fail(const Status& reason) {
  std::lock_guard lock(mutex_);
  if (failure_.ok())
    failure_ =
        Status::peer_lost(-1, "the job's store at " + address_ + " is gone: " + reason.message());
  arrived_.notify_all();
}

}  // namespace allring
