#include "collectives/transport/frame.h"

#include <algorithm>
#include <string>

#include "collectives/base/check.h"
#include "collectives/kernels/crc32c.h"

namespace allring {

namespace {

constexpr std::size_t kPlainHeaderBytes = 16;
constexpr std::size_t kChecksumBytes = 4;

template <typename Integer>
void put(std::byte* out, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i)
    out[i] = static_cast<std::byte>(value >> (8 * i));
}

template <typename Integer>
Integer get(const std::byte* in) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    value |= std::to_integer<Integer>(in[i]) << (8 * i);
  }
  return value;
}

/// The part of `bytes`, which stand at `begin` in the frame, that is beyond `moved`.
template <typename Span>
Span rest(Span bytes, std::size_t begin, std::size_t moved) {
  return moved <= begin ? bytes : bytes.subspan(std::min(moved - begin, bytes.size()));
}

std::string message(Tag tag, std::uint64_t bytes) {
  return "tag " + std::to_string(tag) + " with " + std::to_string(bytes) + " bytes";
}

Status corrupted(const char* what) {
  return Status::internal(
      std::string("the ") + what +
      " arrived with a wrong CRC32C: it was changed on the wire, in a network card or in memory, "
      "and was not used. Check the network hardware of the two hosts (ethtool -S, dmesg)");
}

}  // namespace

void FrameWriter::start(Tag tag, std::span<const std::byte> payload) {
  ALLRING_CHECK(done(), "one frame at a time");
  payload_ = payload;
  put(header_.data(), tag);
  put(header_.data() + 8, static_cast<std::uint64_t>(payload.size()));
  header_bytes_ = kPlainHeaderBytes;
  if (checked_) {
    put(header_.data() + kPlainHeaderBytes, crc32c(0, header_.data(), kPlainHeaderBytes));
    header_bytes_ += kChecksumBytes;
  }
  total_ = header_bytes_ + payload.size() + (checked_ ? kChecksumBytes : 0);
  moved_ = checksummed_ = 0;
  checksum_ = 0;
}

FrameWriter::Parts FrameWriter::next() {
  const Link::Source header = rest(Link::Source(header_).first(header_bytes_), 0, moved_);
  if (!checked_) return {header, rest(payload_, header_bytes_, moved_), {}};
  const std::size_t gone = moved_ > header_bytes_ ? moved_ - header_bytes_ : 0;
  const std::size_t end = std::min(payload_.size(), gone + kCheckedPieceBytes);
  if (end > checksummed_) {
    checksum_ = crc32c(checksum_, payload_.data() + checksummed_, end - checksummed_);
    checksummed_ = end;
  }
  const Link::Source payload = rest(payload_.first(end), header_bytes_, moved_);
  if (end < payload_.size()) return {header, payload, {}};
  put(trailer_.data(), checksum_);
  return {header, payload, rest(Link::Source(trailer_), header_bytes_ + payload_.size(), moved_)};
}

void FrameReader::start(Tag tag, std::span<std::byte> payload) {
  ALLRING_CHECK(done(), "one frame at a time");
  tag_ = tag;
  payload_ = payload;
  header_bytes_ = kPlainHeaderBytes + (checked_ ? kChecksumBytes : 0);
  total_ = header_bytes_ + payload.size() + (checked_ ? kChecksumBytes : 0);
  moved_ = checksummed_ = 0;
  checksum_ = 0;
}

FrameReader::Parts FrameReader::next() {
  const Link::Sink header = rest(Link::Sink(header_).first(header_bytes_), 0, moved_);
  if (!checked_) return {header, rest(payload_, header_bytes_, moved_), {}};
  const std::size_t end = std::min(payload_.size(), checksummed_ + kCheckedPieceBytes);
  const Link::Sink payload = rest(payload_.first(end), header_bytes_, moved_);
  if (end < payload_.size()) return {header, payload, {}};
  return {header, payload, rest(Link::Sink(trailer_), header_bytes_ + payload_.size(), moved_)};
}

Status FrameReader::moved(std::size_t bytes) {
  const bool header_before = moved_ >= header_bytes_;
  moved_ += bytes;
  if (moved_ < header_bytes_) return {};
  if (!header_before) ALLRING_RETURN_IF_ERROR(check_header());
  if (!checked_) return {};
  const std::size_t arrived = std::min(moved_ - header_bytes_, payload_.size());
  if (arrived > checksummed_) {
    checksum_ = crc32c(checksum_, payload_.data() + checksummed_, arrived - checksummed_);
    checksummed_ = arrived;
  }
  if (done() && get<std::uint32_t>(trailer_.data()) != checksum_) return corrupted("payload");
  return {};
}

Status FrameReader::check_header() const {
  if (checked_ && get<std::uint32_t>(header_.data() + kPlainHeaderBytes) !=
                      crc32c(0, header_.data(), kPlainHeaderBytes)) {
    return corrupted("header of a message");
  }
  const auto tag = get<std::uint64_t>(header_.data());
  const auto bytes = get<std::uint64_t>(header_.data() + 8);
  if (tag == tag_ && bytes == payload_.size()) return {};
  return Status::internal("expected a message of " + message(tag_, payload_.size()) + " and got " +
                          message(tag, bytes) + ": the ranks run different collectives");
}

}  // namespace allring
