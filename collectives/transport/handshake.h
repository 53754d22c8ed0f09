#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "collectives/base/clock.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"
#include "collectives/transport/socket.h"

namespace allring {

/// What a connection is for, as the side that connects says it.
struct Hello {
  std::uint32_t channel = 0;  ///< process_set_id * 64 + k
  Rank from_rank = 0;
  Rank to_rank = 0;  ///< whom the connection is meant for: an address may lead to the wrong process
  std::uint32_t epoch = 0;

  bool operator==(const Hello&) const = default;
};

// The handshake that opens every connection between processes of a job. Each side proves that it
// knows the job's secret without showing it: both choose 32 random bytes, and send HMAC-SHA256
// (RFC 2104) under the secret of their role, both random strings and the hello. Fresh random bytes
// make a recorded conversation useless, the role makes an answer useless as a question. What
// follows on the connection is neither encrypted nor authenticated.
//
//   client -> server   magic, version, client nonce
//   server -> client   magic, version, server nonce
//   client -> server   hello, client's proof
//   server -> client   verdict, server's proof
//
// Every message has a fixed size, so nothing that a stranger sends is allocated for or believed.
// An empty secret is accepted on unix sockets only, and there both sides check that the other
// process belongs to the same user.

/// Why a server turns a proven client away; empty to let it in.
using HelloCheck = std::function<std::string(const Hello&)>;

/// Blocks until the server has proven itself and let us in.
/// @return kPeerLost if the other side closes or refuses (with its reason), kTimedOut, kAborted
///         (cancel), kInvalidArgument if it is no Allring process, has another version or
///         secret.
Status client_handshake(int fd, std::string_view secret, const Hello& hello, Deadline deadline,
                        Cancel cancel = {});

/// Blocks until the client has proven itself. A client that `check` turns away is told why.
/// @return as client_handshake(), kInvalidArgument also for what `check` refused.
Result<Hello> server_handshake(int fd, std::string_view secret, Deadline deadline,
                               const HelloCheck& check = {}, Cancel cancel = {});

/// The server's side in steps, for a thread that serves many connections: advance() never blocks.
/// Thread-compatible.
class ServerHandshake {
 public:
  enum class Progress { kWantRead, kWantWrite, kDone };

  /// @param fd a non-blocking socket, not owned.
  ServerHandshake(int fd, std::string secret, HelloCheck check);

  /// Moves on as far as the socket allows. @return what to wait for, or why the client is to be
  /// dropped.
  Result<Progress> advance();
  /// REQUIRES: advance() has returned kDone.
  const Hello& hello() const { return hello_; }

 private:
  enum class Step { kStart, kReadGreeting, kWriteGreeting, kReadProof, kWriteVerdict, kDone };

  Result<bool> read_message(std::size_t bytes);
  Result<bool> write_message(std::size_t bytes);
  Status take_greeting();
  void take_proof();

  int fd_;
  std::string secret_;
  HelloCheck check_;
  Step step_ = Step::kStart;
  std::array<std::byte, 256> message_{};
  std::size_t moved_ = 0;
  std::array<std::byte, 64> nonces_{};
  Hello hello_;
  Status refusal_;
};

}  // namespace allring
