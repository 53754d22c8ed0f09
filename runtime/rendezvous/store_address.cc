#include "runtime/rendezvous/store_address.h"

#include <charconv>

namespace allring {

namespace {

constexpr std::string_view kUnix = "unix:@";
constexpr std::string_view kTcp = "tcp:";
// sun_path less its leading zero byte.
constexpr std::size_t kLongestUnixName = 107;

Status malformed(std::string_view text, const std::string& why) {
  return Status::invalid_argument("store address \"" + std::string(text) + "\": " + why +
                                  "; expected unix:@name, tcp:host:port or tcp:[ipv6]:port");
}

}  // namespace

std::string StoreAddress::to_string() const {
  if (is_unix) return std::string(kUnix) + name;
  const bool ipv6 = host.find(':') != std::string::npos;
  return std::string(kTcp) + (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<StoreAddress> StoreAddress::parse(std::string_view text) {
  StoreAddress address;
  if (text.starts_with(kUnix)) {
    address.is_unix = true;
    address.name = text.substr(kUnix.size());
    if (address.name.empty()) return malformed(text, "the name is empty");
    if (address.name.size() > kLongestUnixName) return malformed(text, "the name is too long");
    return address;
  }
  if (!text.starts_with(kTcp)) return malformed(text, "unknown kind");
  const std::string_view rest = text.substr(kTcp.size());
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return malformed(text, "no port");
  std::string_view host = rest.substr(0, colon);
  const std::string_view port = rest.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return malformed(text, "an IPv6 address needs brackets");
  }
  address.host = host;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size())
    return malformed(text, "the port is no number from 0 to 65535");
  return address;
}

}  // namespace allring
