#include "runtime/rendezvous/store_connect.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>

#include <algorithm>

#include "collectives/transport/handshake.h"
#include "runtime/rendezvous/store_address.h"

namespace allring {

namespace {

// Of one attempt, so that a candidate that swallows packets does not keep us from the others.
constexpr seconds kAttemptTime(3);
constexpr milliseconds kFirstPause(1);
constexpr milliseconds kLongestPause(200);

// Says that a connection is none between ranks.
constexpr std::uint32_t kStoreChannel = 0xffffffff;

Result<Fd> connect_one(const StoreAddress& address, Deadline deadline) {
  if (address.is_unix) return connect_unix(address.name, deadline);
  ALLRING_ASSIGN_OR_RETURN(const auto addresses, resolve(address.host, address.port));
  Status failure;
  for (const TcpAddress& each : addresses) {
    Result<Fd> fd = connect_tcp(each, std::min(deadline, deadline_after(kAttemptTime)));
    if (fd.ok()) return fd;
    failure = fd.status();
  }
  return failure;
}

Result<Fd> attempt(const StoreAddress& address, const std::string& secret, Rank rank,
                   Deadline deadline) {
  ALLRING_ASSIGN_OR_RETURN(Fd fd, connect_one(address, deadline));
  Hello hello;
  hello.channel = kStoreChannel;
  hello.from_rank = rank;
  const Deadline handshake = std::min(deadline, deadline_after(kAttemptTime));
  ALLRING_RETURN_IF_ERROR(client_handshake(fd.get(), secret, hello, handshake));
  return fd;
}

}  // namespace

Result<std::vector<TcpAddress>> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0)
    return Status::peer_lost(-1,
                             "no address of host " + host + ": " +
                                 (error == EAI_SYSTEM ? "resolver failed" : gai_strerror(error)));
  std::vector<TcpAddress> addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    char ip[NI_MAXHOST];
    if (getnameinfo(each->ai_addr, each->ai_addrlen, ip, sizeof(ip), nullptr, 0, NI_NUMERICHOST) ==
        0)
      addresses.push_back({ip, port});
  }
  freeaddrinfo(found);
  if (addresses.empty()) return Status::peer_lost(-1, "no address of host " + host);
  return addresses;
}

Result<StoreLink> connect_store(const std::vector<std::string>& candidates,
                                const std::string& secret, Rank rank, Deadline deadline) {
  std::vector<StoreAddress> addresses;
  for (const std::string& candidate : candidates) {
    ALLRING_ASSIGN_OR_RETURN(StoreAddress address, StoreAddress::parse(candidate));
    if (secret.empty() && !address.is_unix)
      return Status::invalid_argument("a store on TCP (" + candidate + ") needs a secret");
    addresses.push_back(std::move(address));
  }
  if (addresses.empty()) return Status::invalid_argument("no address of the job's store is known");
  std::vector<std::string> outcomes(addresses.size(), "not tried yet");
  for (milliseconds pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      Result<Fd> fd = attempt(addresses[i], secret, rank, deadline);
      if (fd.ok()) return StoreLink{std::move(fd).value(), candidates[i]};
      outcomes[i] = fd.status().message();
      if (fd.status().code() == StatusCode::kOutOfMemory) return fd.status();
    }
    if (Clock::real().now() + pause >= deadline) break;
    Clock::real().sleep_until(Clock::real().now() + pause);
  }
  std::string message = "the job's store did not answer in time";
  for (std::size_t i = 0; i < candidates.size(); ++i)
    message += (i == 0 ? ": " : "; ") + candidates[i] + ": " + outcomes[i];
  return Status::timed_out(std::move(message));
}

}  // namespace allring
