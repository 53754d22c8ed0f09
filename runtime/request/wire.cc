#include "runtime/request/wire.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/request/byte_codec.h"

namespace allring {

namespace {

constexpr std::uint8_t kFormat = 1;
constexpr std::uint64_t kMaxRank = 1 << 24;
constexpr std::uint64_t kMaxCacheId = 1 << 25;
constexpr std::uint64_t kMaxGroupSize = 1 << 24;

enum RequestFlag : std::uint8_t {
  kHasPrescale = 1,
  kHasPostscale = 2,
  kHasRoot = 4,
  kHasDevice = 8,
  kHasSplits = 16,
  kHasGroup = 32,
  kUnnamed = 64,
};

void write(ByteWriter& out, const Request& request) {
  out.u8(static_cast<std::uint8_t>(request.kind));
  out.u8(static_cast<std::uint8_t>(request.dtype));
  out.u8(static_cast<std::uint8_t>(request.op));
  const bool grouped = !request.group.empty() || request.group_size != 0;
  out.u8(static_cast<std::uint8_t>(
      (request.prescale != 1.0 ? kHasPrescale : 0) |
      (request.postscale != 1.0 ? kHasPostscale : 0) | (request.root != 0 ? kHasRoot : 0) |
      (request.device != -1 ? kHasDevice : 0) | (request.splits.empty() ? 0 : kHasSplits) |
      (grouped ? kHasGroup : 0) | (request.unnamed ? kUnnamed : 0)));
  out.text(request.name);
  out.varint(request.shape.size());
  for (std::int64_t extent : request.shape) out.signed_varint(extent);
  if (request.prescale != 1.0) out.f64(request.prescale);
  if (request.postscale != 1.0) out.f64(request.postscale);
  if (request.root != 0) out.signed_varint(request.root);
  if (request.device != -1) out.signed_varint(request.device);
  if (!request.splits.empty()) {
    out.varint(request.splits.size());
    for (std::int64_t rows : request.splits) out.signed_varint(rows);
  }
  if (grouped) {
    out.text(request.group);
    out.signed_varint(request.group_size);
  }
}

std::int32_t read_int32(ByteReader& in) {
  const std::int64_t value = in.signed_varint();
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max())
    in.fail();
  return static_cast<std::int32_t>(value);
}

std::vector<std::int64_t> read_sizes(ByteReader& in, std::size_t count) {
  std::vector<std::int64_t> sizes(count);
  for (std::int64_t& size : sizes) {
    size = in.signed_varint();
    if (size < 0) in.fail();
  }
  return sizes;
}

Request read_request(ByteReader& in) {
  Request request;
  const int kind = in.u8();
  const int dtype = in.u8();
  const int op = in.u8();
  const int flags = in.u8();
  if (kind > static_cast<int>(CollectiveKind::kBarrier) || !is_data_type(dtype) ||
      !is_reduce_op(op) || flags >= 128) {
    in.fail();
    return request;
  }
  request.kind = static_cast<CollectiveKind>(kind);
  request.dtype = static_cast<DataType>(dtype);
  request.op = static_cast<ReduceOp>(op);
  request.name = in.text(kMaxNameBytes);
  request.shape = read_sizes(in, std::min(in.item_count(1), kMaxDimensions + 1));
  if (request.shape.size() > kMaxDimensions) in.fail();
  if (flags & kHasPrescale) request.prescale = in.f64();
  if (flags & kHasPostscale) request.postscale = in.f64();
  if (flags & kHasRoot) request.root = read_int32(in);
  if (flags & kHasDevice) request.device = read_int32(in);
  if (flags & kHasSplits) request.splits = read_sizes(in, in.item_count(1));
  if (flags & kHasGroup) {
    request.group = in.text(kMaxNameBytes);
    const std::int32_t size = read_int32(in);
    if (size < 0 || static_cast<std::uint64_t>(size) > kMaxGroupSize) in.fail();
    request.group_size = size;
  }
  request.unnamed = (flags & kUnnamed) != 0;
  return request;
}

// A byte says which form follows: 0, differences; 1, a bit vector (ascending ids only).
void write(ByteWriter& out, const std::vector<CacheId>& ids) {
  ByteWriter differences;
  std::int64_t previous = -1;
  bool ascending = true;
  for (CacheId id : ids) {
    ascending = ascending && id > previous;
    differences.signed_varint(static_cast<std::int64_t>(id) - previous - 1);
    previous = id;
  }
  const std::size_t bits = ids.empty() ? 0 : ids.back() - std::size_t{ids.front()} + 1;
  if (!ascending || (bits + 7) / 8 >= differences.size()) {
    out.u8(0);
    out.varint(ids.size());
    out.raw(std::move(differences).take());
    return;
  }
  std::vector<std::byte> vector((bits + 7) / 8);
  for (CacheId id : ids) {
    const std::size_t bit = id - ids.front();
    vector[bit / 8] |= static_cast<std::byte>(1 << (bit % 8));
  }
  out.u8(1);
  out.varint(ids.front());
  out.varint(vector.size());
  out.raw(vector);
}

std::vector<CacheId> read_ids(ByteReader& in) {
  std::vector<CacheId> ids;
  const int form = in.u8();
  if (form == 0) {
    const std::size_t count = in.item_count(1);
    ids.reserve(count);
    std::int64_t previous = -1;
    for (std::size_t i = 0; i < count && in.ok(); ++i) {
      const std::int64_t difference = in.signed_varint();
      if (difference < -static_cast<std::int64_t>(kMaxCacheId) ||
          difference > static_cast<std::int64_t>(kMaxCacheId)) {
        in.fail();
        break;
      }
      previous += difference + 1;
      if (previous < 0 || previous > static_cast<std::int64_t>(kMaxCacheId)) in.fail();
      ids.push_back(static_cast<CacheId>(previous));
    }
  } else if (form == 1) {
    const auto base = static_cast<CacheId>(in.varint_up_to(kMaxCacheId));
    const auto vector = in.raw(in.item_count(1));
    for (std::size_t i = 0; i < vector.size(); ++i)
      for (int bit = 0; bit < 8; ++bit)
        if ((vector[i] & static_cast<std::byte>(1 << bit)) != std::byte{0})
          ids.push_back(base + static_cast<CacheId>(8 * i + bit));
  } else {
    in.fail();
  }
  return ids;
}

Rank read_rank(ByteReader& in) { return static_cast<Rank>(in.varint_up_to(kMaxRank)); }

void write(ByteWriter& out, const Announcement& announcement) {
  out.varint(announcement.rank);
  out.varint(announcement.seen);
  write(out, announcement.cached);
  out.varint(announcement.requests.size());
  for (const Request& request : announcement.requests) write(out, request);
}

Announcement read_announcement(ByteReader& in) {
  Announcement announcement;
  announcement.rank = read_rank(in);
  announcement.seen = in.varint();
  announcement.cached = read_ids(in);
  for (std::size_t count = in.item_count(6); count > 0 && in.ok(); --count)
    announcement.requests.push_back(read_request(in));
  return announcement;
}

void write(ByteWriter& out, const Response& response) {
  out.text(response.name);
  out.varint(response.remember ? std::uint64_t{*response.remember} + 1 : 0);
  out.varint(response.sizes.size());
  for (std::int64_t size : response.sizes) out.signed_varint(size);
}

Response read_response(ByteReader& in) {
  Response response;
  response.name = in.text(kMaxNameBytes);
  const std::uint64_t remember = in.varint_up_to(kMaxCacheId);
  if (remember > 0) response.remember = static_cast<CacheId>(remember - 1);
  response.sizes = read_sizes(in, in.item_count(1));
  return response;
}

std::string_view cut(std::string_view message) { return message.substr(0, kMaxMessageBytes); }

StatusCode read_failure_code(ByteReader& in) {
  const int code = in.u8();
  if (code < static_cast<int>(StatusCode::kInvalidArgument) ||
      code > static_cast<int>(StatusCode::kInternal)) {
    in.fail();
    return StatusCode::kInternal;
  }
  return static_cast<StatusCode>(code);
}

void write(ByteWriter& out, const Rejection& rejection) {
  out.u8(static_cast<std::uint8_t>(rejection.code));
  out.text(cut(rejection.message));
  out.varint(rejection.names.size());
  for (const std::string& name : rejection.names) out.text(name);
  out.varint(rejection.ranks.size());
  for (Rank rank : rejection.ranks) out.varint(rank);
}

Rejection read_rejection(ByteReader& in) {
  Rejection rejection;
  rejection.code = read_failure_code(in);
  rejection.message = in.text(kMaxMessageBytes);
  for (std::size_t count = in.item_count(1); count > 0 && in.ok(); --count)
    rejection.names.push_back(in.text(kMaxNameBytes));
  for (std::size_t count = in.item_count(1); count > 0 && in.ok(); --count)
    rejection.ranks.push_back(read_rank(in));
  return rejection;
}

void write(ByteWriter& out, const Decision& decision) {
  out.varint(decision.sequence);
  out.u8(decision.limits.has_value());
  if (decision.limits) {
    out.signed_varint(decision.limits->threshold_bytes);
    out.signed_varint(decision.limits->tensor_bytes);
  }
  out.varint(decision.entries.size());
  for (const DecisionEntry& entry : decision.entries) {
    out.u8(static_cast<std::uint8_t>(entry.index()));
    std::visit([&out](const auto& value) { write(out, value); }, entry);
  }
}

Decision read_decision(ByteReader& in) {
  Decision decision;
  decision.sequence = in.varint();
  if (const int has_limits = in.u8(); has_limits == 1) {
    FusionLimits limits;
    limits.threshold_bytes = in.signed_varint();
    limits.tensor_bytes = in.signed_varint();
    if (limits.threshold_bytes < 0 || limits.tensor_bytes < 0) in.fail();
    decision.limits = limits;
  } else if (has_limits != 0) {
    in.fail();
  }
  for (std::size_t count = in.item_count(3); count > 0 && in.ok(); --count) {
    switch (in.u8()) {
      case 0:
        decision.entries.emplace_back(read_ids(in));
        break;
      case 1:
        decision.entries.emplace_back(read_response(in));
        break;
      case 2:
        decision.entries.emplace_back(read_rejection(in));
        break;
      default:
        in.fail();
    }
  }
  return decision;
}

void write(ByteWriter& out, const Status& status) {
  out.u8(static_cast<std::uint8_t>(status.code()));
  out.text(cut(status.message()));
  out.varint(static_cast<std::uint64_t>(status.lost_rank().value_or(-1) + 1));
}

Status read_status(ByteReader& in) {
  const StatusCode code = read_failure_code(in);
  std::string message = in.text(kMaxMessageBytes);
  const auto lost = static_cast<int>(in.varint_up_to(kMaxRank)) - 1;
  if (code == StatusCode::kPeerLost && lost >= 0)
    return Status::peer_lost(lost, std::move(message));
  return Status(code, std::move(message));
}

void write(ByteWriter& out, const FailureReport& report) {
  out.varint(report.rank);
  write(out, report.status);
}
void write(ByteWriter& out, const Abort& abort) { write(out, abort.status); }
void write(ByteWriter& out, const Leave& leave) { out.varint(leave.rank); }
void write(ByteWriter& out, const Stop& stop) { out.varint(stop.rank); }
void write(ByteWriter& out, const Drained& drained) { out.varint(drained.rank); }
void write(ByteWriter&, const Closed&) {}

ControlMessage read_message(ByteReader& in, int type) {
  switch (type) {
    case 0:
      return read_announcement(in);
    case 1:
      return read_decision(in);
    case 2: {
      const Rank rank = read_rank(in);
      return FailureReport{rank, read_status(in)};
    }
    case 3:
      return Abort{read_status(in)};
    case 4:
      return Leave{read_rank(in)};
    case 5:
      return Stop{read_rank(in)};
    case 6:
      return Drained{read_rank(in)};
    case 7:
      return Closed{};
    default:
      in.fail();
      return Closed{};
  }
}

}  // namespace

std::vector<std::byte> encode(std::uint32_t epoch, const ControlMessage& message) {
  ByteWriter out;
  out.u8(kFormat);
  out.u8(static_cast<std::uint8_t>(message.index()));
  out.u32(epoch);
  std::visit([&out](const auto& value) { write(out, value); }, message);
  return std::move(out).take();
}

Result<Envelope> decode(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  const int format = in.u8();
  const int type = in.u8();
  Envelope envelope;
  envelope.epoch = in.u32();
  if (in.ok() && format == kFormat) envelope.message = read_message(in, type);
  if (!in.done() || format != kFormat)
    return Status::internal("a control message of " + std::to_string(bytes.size()) +
                            " bytes (format " + std::to_string(format) + ", type " +
                            std::to_string(type) + ") makes no sense; do all ranks run the same " +
                            "version of allring?");
  return envelope;
}

}  // namespace allring
