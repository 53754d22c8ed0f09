#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/base/status.h"

namespace allring {

/// Where a store is served: "unix:@name", an abstract socket, or "tcp:host:port", where host may
/// be a name, an IPv4 address or an IPv6 address in brackets.
struct StoreAddress {
  bool is_unix = false;
  std::string name;  ///< of the unix socket, without the @
  std::string host;  ///< without brackets; empty: every interface, for a server
  std::uint16_t port = 0;

  std::string to_string() const;
  /// @return kInvalidArgument quoting `text` and what is accepted.
  static Result<StoreAddress> parse(std::string_view text);
};

}  // namespace allring
