#include "runtime/rendezvous/store_protocol.h"

#include "collectives/base/check.h"

namespace allring {

namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kHeadBytes = 5;  // type and id

void append_u32(std::string* output, std::size_t value) {
  for (int shift = 0; shift < 32; shift += 8)
    output->push_back(static_cast<char>(value >> shift & 0xff));
}

std::uint32_t u32_at(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value |= std::uint32_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  return value;
}

Status malformed(const std::string& why) {
  return Status::invalid_argument("malformed store message: " + why);
}

}  // namespace

std::string encode_store_answer(StoreFrameType type, std::uint32_t id, std::size_t value_bytes) {
  std::string head;
  append_u32(&head, kHeadBytes + value_bytes);
  head.push_back(static_cast<char>(type));
  append_u32(&head, id);
  return head;
}

std::string StoreFrame::encode() const {
  std::string body;
  const bool has_key_length = type == StoreFrameType::kPut;
  const std::size_t bytes = kHeadBytes + (has_key_length ? 4 : 0) + key.size() + value.size();
  ALLRING_CHECK(bytes <= kLargestStoreFrame && key.size() <= kLongestStoreKey,
                "a store frame within its limits");
  body.reserve(kLengthBytes + bytes);
  append_u32(&body, bytes);
  body.push_back(static_cast<char>(type));
  append_u32(&body, id);
  if (has_key_length) append_u32(&body, key.size());
  body.append(key);
  body.append(value);
  return body;
}

Result<StoreFrame> StoreFrame::parse(std::string_view body) {
  if (body.size() < kHeadBytes) return malformed("cut short");
  StoreFrame frame;
  frame.type = static_cast<StoreFrameType>(body[0]);
  frame.id = u32_at(body, 1);
  body.remove_prefix(kHeadBytes);
  switch (frame.type) {
    case StoreFrameType::kPut: {
      if (body.size() < 4 || u32_at(body, 0) > body.size() - 4)
        return malformed("the key is longer than the message");
      const std::uint32_t key_bytes = u32_at(body, 0);
      frame.key = body.substr(4, key_bytes);
      frame.value = body.substr(4 + key_bytes);
      break;
    }
    case StoreFrameType::kWait:
    case StoreFrameType::kRemove:
      frame.key = body;
      break;
    case StoreFrameType::kCancel:
    case StoreFrameType::kOk:
      if (!body.empty()) return malformed("bytes after its end");
      break;
    case StoreFrameType::kValue:
      frame.value = body;
      break;
    default:
      return malformed("unknown type " + std::to_string(static_cast<int>(frame.type)));
  }
  if (frame.key.size() > kLongestStoreKey) return malformed("the key is too long");
  return frame;
}

Result<std::optional<std::string_view>> StoreFrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  std::size_t bytes = 0;
  if (rest.size() >= kLengthBytes) {
    bytes = u32_at(rest, 0);
    if (bytes < kHeadBytes || bytes > kLargestStoreFrame)
      return malformed("a length of " + std::to_string(bytes));
  }
  if (rest.size() < kLengthBytes || rest.size() - kLengthBytes < bytes) {
    buffer_.erase(0, taken_);
    taken_ = 0;
    if (buffer_.empty()) buffer_.shrink_to_fit();
    return std::optional<std::string_view>();
  }
  taken_ += kLengthBytes + bytes;
  return std::optional<std::string_view>(rest.substr(kLengthBytes, bytes));
}

}  // namespace allring
