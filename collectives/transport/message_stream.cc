#include "collectives/transport/message_stream.h"

#include <string>

#include "collectives/base/check.h"

namespace allring {

namespace {

/// What one stream moves before the others get their turn: they may be what lets the peer go on.
constexpr std::size_t kTurnBytes = 1 << 20;

}  // namespace

Operation* OperationPool::acquire() {
  if (free_.empty()) {
    slots_.emplace_back();
    slots_.back().slot = static_cast<std::uint32_t>(slots_.size() - 1);
    free_.reserve(slots_.size());
    free_.push_back(&slots_.back());
  }
  Operation* operation = free_.back();
  free_.pop_back();
  return operation;
}

void OperationPool::release(Operation* operation) {
  Operation fresh;
  fresh.slot = operation->slot;
  fresh.generation = operation->generation + 1;
  *operation = fresh;
  free_.push_back(operation);
}

Ticket OperationPool::ticket(const Operation& operation) {
  return static_cast<Ticket>(operation.generation) << 32 | (operation.slot + 1);
}

Operation* OperationPool::find(Ticket ticket) {
  const std::uint64_t slot = (ticket & 0xffffffff) - 1;
  ALLRING_CHECK(slot < slots_.size(), "no such ticket");
  Operation* operation = &slots_[slot];
  ALLRING_CHECK(operation->generation == ticket >> 32 && operation->peer >= 0,
                "a ticket is waited for exactly once");
  return operation;
}

void MessageStream::set_link(std::unique_ptr<Link> link, bool checked) {
  ALLRING_CHECK(link_ == nullptr, "a stream gets one link");
  link_ = std::move(link);
  if (sending()) {
    writer_ = std::make_unique<FrameWriter>(checked);
  } else {
    reader_ = std::make_unique<FrameReader>(checked);
  }
  if (first_ != nullptr) start_first();
}

void MessageStream::push(Operation* operation) {
  if (first_ != nullptr) {
    last_->next = operation;
    last_ = operation;
    return;
  }
  first_ = last_ = operation;
  if (linked()) start_first();
}

void MessageStream::start_first() {
  if (sending()) {
    writer_->start(first_->tag, {first_->data, first_->bytes});
  } else {
    reader_->start(first_->tag, {first_->data, first_->bytes});
  }
}

bool MessageStream::frame_done() const { return sending() ? writer_->done() : reader_->done(); }

Result<std::size_t> MessageStream::move_some() {
  if (sending()) {
    ALLRING_ASSIGN_OR_RETURN(const std::size_t moved, link_->try_write(writer_->next()));
    writer_->moved(moved);
    return moved;
  }
  ALLRING_ASSIGN_OR_RETURN(const std::size_t moved, link_->try_read(reader_->next()));
  ALLRING_RETURN_IF_ERROR(reader_->moved(moved));
  return moved;
}

Result<bool> MessageStream::advance() {
  std::size_t turn = 0;
  while (first_ != nullptr && turn < kTurnBytes) {
    ALLRING_ASSIGN_OR_RETURN(const std::size_t moved, move_some());
    if (moved == 0) break;
    turn += moved;
    if (!frame_done()) continue;
    first_->done = true;
    first_ = first_->next;
    if (first_ != nullptr) start_first();
  }
  return turn > 0;
}

std::string MessageStream::describe_progress() const {
  if (first_ == nullptr) return "nothing is pending";
  const std::string message = "the message with tag " + std::to_string(first_->tag) + " and " +
                              std::to_string(first_->bytes) + " bytes";
  const std::size_t moved =
      !linked() ? 0 : (sending() ? writer_->moved_bytes() : reader_->moved_bytes());
  if (moved == 0) return "nothing of " + message + (sending() ? " was taken" : " came");
  const std::size_t all = sending() ? writer_->frame_bytes() : reader_->frame_bytes();
  return std::to_string(moved) + " of the " + std::to_string(all) + " bytes in which " + message +
         " travels " + (sending() ? "were taken" : "came");
}

}  // namespace allring
