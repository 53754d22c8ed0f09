#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/socket.h"

namespace allring {

/// What a rank tells the others about itself, so that they can reach and name it.
struct PeerInfo {
  /// An address that the rank listens on, with the length of its network's prefix.
  struct Address {
    TcpAddress tcp;
    int prefix_bits = 0;
    bool operator==(const Address& other) const {
      return tcp.ip == other.tcp.ip && tcp.port == other.tcp.port &&
             prefix_bits == other.prefix_bits;
    }
  };

  Rank rank = 0;
  std::string hostname;
  /// Equal for two ranks iff abstract unix sockets and passed memory work between them: the
  /// kernel's boot id and the network and user namespaces.
  std::string host_key;
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::string unix_name;           ///< of its abstract socket
  std::vector<Address> addresses;  ///< empty where the job is on one host
  bool shared_memory = true;       ///< not switched off by the user
  std::string core_mask;           ///< of the cores that it may run on, see core_mask.h

  bool same_host(const PeerInfo& other) const { return host_key == other.host_key; }
  /// "rank 2 (host b, pid 123)".
  std::string describe() const;

  bool operator==(const PeerInfo&) const = default;

  /// Appends the wire form, which says where it ends.
  void append_to(std::string* output) const;
  /// Takes one PeerInfo off the front of *input.
  /// @return kInvalidArgument if it is cut short or out of bounds.
  static Result<PeerInfo> parse(std::string_view* input);
};

/// Parses the concatenation of `size` infos. @return kInvalidArgument unless they are those of
/// ranks 0, 1, .. size-1 in this order with nothing after them.
Result<std::vector<PeerInfo>> parse_peers(std::string_view text, int size);

/// The host_key of this process.
Result<std::string> this_host_key();

/// The numeric addresses (port 0) of this host's interfaces that are up.
/// @param interfaces names, comma separated, in order of preference; empty: every interface but
///        the loopback.
/// @param loopback only the loopback's addresses instead.
/// @return kInvalidArgument for a name that no interface with an address has (the message lists
/// those
///         that there are), or if there is nothing to return.
Result<std::vector<PeerInfo::Address>> interface_addresses(std::string_view interfaces,
                                                           bool loopback);

/// `mine` and `theirs` lie in one network, by the shorter of their prefixes.
bool same_network(const PeerInfo::Address& mine, const PeerInfo::Address& theirs);

}  // namespace allring
