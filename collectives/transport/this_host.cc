// What this process can find out about its own host: identity and addresses.

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "collectives/transport/peer_info.h"

namespace allring {

namespace {

/// "net:[4026531840]"; empty where the system has no namespaces, where all share the one.
std::string namespace_of_this_process(const char* kind) {
  char text[PATH_MAX];
  const std::string path = std::string("/proc/self/ns/") + kind;
  const ssize_t size = readlink(path.c_str(), text, sizeof(text));
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

int count_bits(const void* mask, std::size_t bytes) {
  int bits = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    bits += std::popcount(static_cast<const unsigned char*>(mask)[i]);
  }
  return bits;
}

/// The numeric address of an interface; no ip for families other than IPv4 and IPv6 and for
/// addresses that are valid on one link only, which the other side could not use without our names.
PeerInfo::Address numeric(const ifaddrs& entry) {
  PeerInfo::Address address;
  char text[INET6_ADDRSTRLEN] = {};
  if (entry.ifa_addr == nullptr || entry.ifa_netmask == nullptr) return address;
  if (entry.ifa_addr->sa_family == AF_INET) {
    const auto* ip = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr);
    const auto* mask = reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask);
    inet_ntop(AF_INET, &ip->sin_addr, text, sizeof(text));
    address.prefix_bits = count_bits(&mask->sin_addr, sizeof(mask->sin_addr));
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    const auto* ip = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    const auto* mask = reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask);
    if (IN6_IS_ADDR_LINKLOCAL(&ip->sin6_addr)) return address;
    inet_ntop(AF_INET6, &ip->sin6_addr, text, sizeof(text));
    address.prefix_bits = count_bits(&mask->sin6_addr, sizeof(mask->sin6_addr));
  }
  address.tcp.ip = text;
  return address;
}

std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string name(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    std::erase(name, ' ');
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

struct Interface {
  std::string name;
  bool loopback = false;
  PeerInfo::Address address;
};

/// One entry per address of an interface that is up.
Result<std::vector<Interface>> usable_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return Status::from_errno("cannot list the network interfaces", errno);
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    PeerInfo::Address address = numeric(*entry);
    if (address.tcp.ip.empty()) continue;
    const bool loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    found.push_back({entry->ifa_name, loopback, std::move(address)});
  }
  return found;
}

std::string list_of(const std::vector<Interface>& interfaces) {
  std::string list;
  for (const Interface& entry : interfaces) {
    list += (list.empty() ? "" : ", ") + entry.name + " (" + entry.address.tcp.ip + ")";
  }
  return list.empty() ? "none" : list;
}

}  // namespace

Result<std::string> this_host_key() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) {
    return Status::unsupported(
        "cannot tell hosts apart: /proc/sys/kernel/random/boot_id is not readable; mount /proc");
  }
  return boot + " " + namespace_of_this_process("net") + " " + namespace_of_this_process("user");
}

Result<std::vector<PeerInfo::Address>> interface_addresses(std::string_view interfaces,
                                                           bool loopback) {
  ALLRING_ASSIGN_OR_RETURN(const std::vector<Interface> usable, usable_interfaces());
  std::vector<PeerInfo::Address> chosen;
  const std::vector<std::string> names = split_names(interfaces);
  for (const std::string& name : names) {
    const std::size_t before = chosen.size();
    for (const Interface& entry : usable) {
      if (entry.name == name) chosen.push_back(entry.address);
    }
    if (chosen.size() == before) {
      return Status::invalid_argument("no network interface '" + name +
                                      "' that is up and has an address; this host has " +
                                      list_of(usable));
    }
  }
  if (names.empty()) {
    for (const Interface& entry : usable) {
      if (entry.loopback == loopback) chosen.push_back(entry.address);
    }
  }
  if (chosen.empty()) {
    return Status::invalid_argument(
        std::string("no network interface that other hosts could reach is up; this host has ") +
        list_of(usable));
  }
  return chosen;
}

}  // namespace allring
