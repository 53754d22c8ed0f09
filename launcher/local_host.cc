#include "launcher/local_host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "launcher/file_descriptor.h"

namespace allring {

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

AddressList resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), "9", &hints, &found) != 0) found = nullptr;
  return AddressList(found, &::freeaddrinfo);
}

std::string numeric(const sockaddr* address) {
  char text[NI_MAXHOST] = {};
  const socklen_t size =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

bool is_own_address(const sockaddr* address) {
  if (is_loopback(address)) return true;
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) != 0) return false;
  const std::string wanted = numeric(address);
  bool found = false;
  for (const ifaddrs* each = interfaces; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != address->sa_family) continue;
    found = numeric(each->ifa_addr) == wanted;
  }
  ::freeifaddrs(interfaces);
  return found;
}

std::string own_user() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr ? entry->pw_name : "";
}

bool same_name(const std::string& a, const std::string& b) {
  return ::strcasecmp(a.c_str(), b.c_str()) == 0;
}

}  // namespace

std::string own_hostname() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

bool is_local_host(const Host& host) {
  if (!host.user.empty() && host.user != own_user()) return false;
  if (same_name(host.name, "localhost") || same_name(host.name, own_hostname())) return true;
  const AddressList addresses = resolve(host.name);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    if (is_own_address(each->ai_addr)) return true;
  }
  return false;
}

std::string own_address_towards(const std::string& remote) {
  const AddressList addresses = resolve(remote);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    // Connecting a datagram socket sends nothing; it only asks the routing table.
    FileDescriptor socket(::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    if (socket && ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0)
      return numeric(reinterpret_cast<sockaddr*>(&own));
  }
  return "";
}

}  // namespace allring
