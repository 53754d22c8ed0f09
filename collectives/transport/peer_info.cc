#include "collectives/transport/peer_info.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>

namespace allring {

namespace {

// More than any real host has; a reader allocates for no more than this.
constexpr std::size_t kMaxTextBytes = 1024;
constexpr std::size_t kMaxAddresses = 256;

template <typename Integer>
void put(std::string* output, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    output->push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
}

void put_text(std::string* output, std::string_view text) {
  text = text.substr(0, kMaxTextBytes);
  put(output, static_cast<std::uint16_t>(text.size()));
  output->append(text);
}

/// Takes fields off the front of a text; once one did not fit, all later ones are empty.
class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}

  template <typename Integer>
  Integer integer() {
    if (left_.size() < sizeof(Integer)) return fail<Integer>();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(left_[i])) << (8 * i);
    }
    left_.remove_prefix(sizeof(Integer));
    return static_cast<Integer>(value);
  }

  std::string text() {
    const auto size = integer<std::uint16_t>();
    if (size > kMaxTextBytes || size > left_.size()) return fail<std::string>();
    std::string value(left_.substr(0, size));
    left_.remove_prefix(size);
    return value;
  }

  template <typename Value>
  Value fail() {
    failed_ = true;
    left_ = {};
    return Value();
  }

  bool failed() const { return failed_; }
  std::string_view left() const { return left_; }

 private:
  std::string_view left_;
  bool failed_ = false;
};

/// The bytes of a numeric address, most significant first; empty if it is none.
std::string address_bytes(const std::string& ip) {
  std::array<char, 16> bytes;
  if (inet_pton(AF_INET, ip.c_str(), bytes.data()) == 1) return {bytes.data(), 4};
  if (inet_pton(AF_INET6, ip.c_str(), bytes.data()) == 1) return {bytes.data(), 16};
  return {};
}

}  // namespace

std::string PeerInfo::describe() const {
  return "rank " + std::to_string(rank) + " (host " + hostname + ", pid " + std::to_string(pid) +
         ")";
}

void PeerInfo::append_to(std::string* output) const {
  put(output, static_cast<std::uint32_t>(rank));
  put_text(output, hostname);
  put_text(output, host_key);
  put(output, static_cast<std::uint32_t>(pid));
  put(output, uid);
  put_text(output, unix_name);
  put(output, static_cast<std::uint8_t>(shared_memory));
  put_text(output, core_mask);
  const std::size_t count = std::min(addresses.size(), kMaxAddresses);
  put(output, static_cast<std::uint16_t>(count));
  for (const Address& address : std::span(addresses).first(count)) {
    put_text(output, address.tcp.ip);
    put(output, address.tcp.port);
    put(output, static_cast<std::uint8_t>(address.prefix_bits));
  }
}

Result<PeerInfo> PeerInfo::parse(std::string_view* input) {
  Reader reader(*input);
  PeerInfo info;
  const auto rank = reader.integer<std::uint32_t>();
  info.hostname = reader.text();
  info.host_key = reader.text();
  info.pid = static_cast<std::int32_t>(reader.integer<std::uint32_t>());
  info.uid = reader.integer<std::uint32_t>();
  info.unix_name = reader.text();
  const auto shared_memory = reader.integer<std::uint8_t>();
  info.core_mask = reader.text();
  const auto count = reader.integer<std::uint16_t>();
  bool sane = rank <= static_cast<std::uint32_t>(std::numeric_limits<Rank>::max()) &&
              shared_memory <= 1 && count <= kMaxAddresses;
  for (int i = 0; sane && !reader.failed() && i < count; ++i) {
    Address address;
    address.tcp.ip = reader.text();
    address.tcp.port = reader.integer<std::uint16_t>();
    address.prefix_bits = reader.integer<std::uint8_t>();
    const std::size_t bytes = address_bytes(address.tcp.ip).size();
    sane = bytes > 0 && address.prefix_bits <= static_cast<int>(8 * bytes);
    info.addresses.push_back(std::move(address));
  }
  if (!sane || reader.failed()) {
    return Status::invalid_argument("the description of a rank is damaged or cut short");
  }
  info.rank = static_cast<Rank>(rank);
  info.shared_memory = shared_memory == 1;
  *input = reader.left();
  return info;
}

Result<std::vector<PeerInfo>> parse_peers(std::string_view text, int size) {
  std::vector<PeerInfo> peers;
  for (Rank rank = 0; rank < size; ++rank) {
    Result<PeerInfo> info = PeerInfo::parse(&text);
    if (!info.ok()) {
      return info.status().with_prefix("list of the job's ranks, rank " + std::to_string(rank) +
                                       " of " + std::to_string(size) + ": ");
    }
    if (info->rank != rank) {
      return Status::invalid_argument("list of the job's ranks: rank " +
                                      std::to_string(info->rank) + " stands in the place of rank " +
                                      std::to_string(rank));
    }
    peers.push_back(*std::move(info));
  }
  if (!text.empty()) {
    return Status::invalid_argument("list of the job's ranks: " + std::to_string(text.size()) +
                                    " bytes follow the last of " + std::to_string(size) +
                                    " ranks; do all ranks agree about the size?");
  }
  return peers;
}

bool same_network(const PeerInfo::Address& mine, const PeerInfo::Address& theirs) {
  const std::string a = address_bytes(mine.tcp.ip);
  const std::string b = address_bytes(theirs.tcp.ip);
  if (a.empty() || a.size() != b.size()) return false;
  int bits = std::min(mine.prefix_bits, theirs.prefix_bits);
  for (std::size_t i = 0; bits > 0; ++i, bits -= 8) {
    const int kept = bits >= 8 ? 0xff : 0xff << (8 - bits);
    if (((a[i] ^ b[i]) & kept) != 0) return false;
  }
  return true;
}

}  // namespace allring
