#include "collectives/transport/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "collectives/transport/socket.h"

namespace allring {

namespace {

constexpr char kMagic[8] = {'a', 'l', 'l', 'r', 'i', 'n', 'g', '\n'};
constexpr std::uint32_t kVersion = 1;

constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kProofBytes = 32;
constexpr std::size_t kHelloBytes = 16;
constexpr std::size_t kReasonBytes = 128;
constexpr std::size_t kGreetingBytes = sizeof(kMagic) + sizeof(kVersion) + kNonceBytes;
constexpr std::size_t kClientProofBytes = kHelloBytes + kProofBytes;
constexpr std::size_t kVerdictBytes = 4 + kProofBytes + kReasonBytes;

/// First word of the verdict.
enum class Verdict : std::uint32_t { kWelcome = 1, kTurnedAway = 2, kUnproven = 3 };

using Proof = std::array<std::byte, kProofBytes>;
using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

void put_u32(std::byte* out, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint32_t get_u32(const std::byte* in) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(in[i]) << (8 * i);
  return value;
}

void put_hello(std::byte* out, const Hello& hello) {
  put_u32(out, hello.channel);
  put_u32(out + 4, static_cast<std::uint32_t>(hello.from_rank));
  put_u32(out + 8, static_cast<std::uint32_t>(hello.to_rank));
  put_u32(out + 12, hello.epoch);
}

Hello get_hello(const std::byte* in) {
  return {get_u32(in), static_cast<Rank>(get_u32(in + 4)), static_cast<Rank>(get_u32(in + 8)),
          get_u32(in + 12)};
}

/// HMAC-SHA256 under the secret of: the role, client nonce, server nonce, `said`.
Proof prove(std::string_view secret, std::string_view role, ConstBytes nonces, ConstBytes said) {
  std::array<std::byte, 256> text;
  std::size_t size = 0;
  for (const ConstBytes part : {ConstBytes(std::as_bytes(std::span(role))), nonces, said}) {
    ALLRING_CHECK(size + part.size() <= text.size(), "a proof covers short texts");
    std::memcpy(text.data() + size, part.data(), part.size());
    size += part.size();
  }
  Proof proof;
  unsigned int length = 0;
  // A null key pointer would mean "the previous key"; an empty string's is not null.
  const unsigned char* made =
      HMAC(EVP_sha256(), secret.empty() ? "" : secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), size,
           reinterpret_cast<unsigned char*>(proof.data()), &length);
  ALLRING_CHECK(made != nullptr && length == kProofBytes, "HMAC-SHA256 failed");
  return proof;
}

Proof client_proof(std::string_view secret, ConstBytes nonces, ConstBytes hello) {
  return prove(secret, "allring client", nonces, hello);
}

/// Covers the verdict too, so that nobody can turn a refusal into a welcome.
Proof server_proof(std::string_view secret, ConstBytes nonces, ConstBytes hello,
                   ConstBytes verdict) {
  std::array<std::byte, kHelloBytes + 4 + kReasonBytes> said;
  std::memcpy(said.data(), hello.data(), kHelloBytes);
  std::memcpy(said.data() + kHelloBytes, verdict.data(), 4);
  std::memcpy(said.data() + kHelloBytes + 4, verdict.data() + 4 + kProofBytes, kReasonBytes);
  return prove(secret, "allring server", nonces, said);
}

bool equal(const Proof& expected, const std::byte* got) {
  return CRYPTO_memcmp(expected.data(), got, kProofBytes) == 0;
}

Status write_greeting(std::byte* out, std::byte* nonce) {
  Bytes left(nonce, kNonceBytes);
  while (!left.empty()) {
    const ssize_t got = getrandom(left.data(), left.size(), 0);
    if (got < 0 && errno != EINTR) return Status::from_errno("no random bytes", errno);
    if (got > 0) left = left.subspan(static_cast<std::size_t>(got));
  }
  std::memcpy(out, kMagic, sizeof(kMagic));
  put_u32(out + sizeof(kMagic), kVersion);
  std::memcpy(out + sizeof(kMagic) + 4, nonce, kNonceBytes);
  return {};
}

Status read_greeting(const std::byte* in, std::byte* nonce) {
  if (std::memcmp(in, kMagic, sizeof(kMagic)) != 0) {
    return Status::invalid_argument("the other side is not a process of Allring");
  }
  const std::uint32_t version = get_u32(in + sizeof(kMagic));
  if (version != kVersion) {
    return Status::invalid_argument("the other side speaks version " + std::to_string(version) +
                                    " of the protocol, this " + "process version " +
                                    std::to_string(kVersion) +
                                    "; install one version of Allring everywhere");
  }
  std::memcpy(nonce, in + sizeof(kMagic) + 4, kNonceBytes);
  return {};
}

/// Without a secret, the kernel's word about the other process's user stands for it.
Status check_unsecured(int fd, std::string_view secret) {
  if (!secret.empty()) return {};
  if (!is_unix_socket(fd)) {
    return Status::invalid_argument(
        "a job without a secret cannot use TCP; start it with hvdrun or give it one");
  }
  ALLRING_ASSIGN_OR_RETURN(const uid_t uid, peer_uid(fd));
  if (uid == geteuid()) return {};
  return Status::invalid_argument("the other side belongs to user " + std::to_string(uid) +
                                  ", this process to user " + std::to_string(geteuid()));
}

/// Reasons come from a proven process, but go into logs: printable ones only.
std::string get_reason(const std::byte* in) {
  std::string reason;
  for (std::size_t i = 0; i < kReasonBytes; ++i) {
    const char c = static_cast<char>(in[i]);
    if (c == '\0') break;
    reason += c >= ' ' && c <= '~' ? c : '?';
  }
  return reason;
}

}  // namespace

Status client_handshake(int fd, std::string_view secret, const Hello& hello, Deadline deadline,
                        Cancel cancel) {
  ALLRING_RETURN_IF_ERROR(check_unsecured(fd, secret));
  std::array<std::byte, 2 * kNonceBytes> nonces;
  std::array<std::byte, kGreetingBytes> greeting;
  ALLRING_RETURN_IF_ERROR(write_greeting(greeting.data(), nonces.data()));
  ALLRING_RETURN_IF_ERROR(write_full(fd, greeting, deadline, cancel));
  ALLRING_RETURN_IF_ERROR(read_full(fd, greeting, deadline, cancel));
  ALLRING_RETURN_IF_ERROR(read_greeting(greeting.data(), nonces.data() + kNonceBytes));

  std::array<std::byte, kClientProofBytes> message;
  const Bytes said = Bytes(message).first<kHelloBytes>();
  put_hello(said.data(), hello);
  const Proof proof = client_proof(secret, nonces, said);
  std::memcpy(message.data() + kHelloBytes, proof.data(), kProofBytes);
  ALLRING_RETURN_IF_ERROR(write_full(fd, message, deadline, cancel));

  std::array<std::byte, kVerdictBytes> verdict;
  ALLRING_RETURN_IF_ERROR(read_full(fd, verdict, deadline, cancel));
  const auto word = static_cast<Verdict>(get_u32(verdict.data()));
  if (word == Verdict::kUnproven ||
      !equal(server_proof(secret, nonces, said, verdict), verdict.data() + 4)) {
    return Status::invalid_argument(
        "the two sides have different secrets: the other side belongs to another job");
  }
  if (word == Verdict::kWelcome) return {};
  return {StatusCode::kPeerLost,
          "the other side refused the connection: " + get_reason(verdict.data() + 4 + kProofBytes)};
}

Result<Hello> server_handshake(int fd, std::string_view secret, Deadline deadline,
                               const HelloCheck& check, Cancel cancel) {
  ServerHandshake handshake(fd, std::string(secret), check);
  while (true) {
    ALLRING_ASSIGN_OR_RETURN(const auto progress, handshake.advance());
    if (progress == ServerHandshake::Progress::kDone) return handshake.hello();
    const short events = progress == ServerHandshake::Progress::kWantRead ? POLLIN : POLLOUT;
    ALLRING_RETURN_IF_ERROR(wait_ready(fd, events, deadline, cancel));
  }
}

ServerHandshake::ServerHandshake(int fd, std::string secret, HelloCheck check)
    : fd_(fd), secret_(std::move(secret)), check_(std::move(check)) {
  static_assert(sizeof(message_) >= kVerdictBytes && sizeof(nonces_) == 2 * kNonceBytes);
}

Result<ServerHandshake::Progress> ServerHandshake::advance() {
  while (true) {
    switch (step_) {
      case Step::kStart:
        ALLRING_RETURN_IF_ERROR(check_unsecured(fd_, secret_));
        step_ = Step::kReadGreeting;
        break;
      case Step::kReadGreeting: {
        ALLRING_ASSIGN_OR_RETURN(const bool whole, read_message(kGreetingBytes));
        if (!whole) return Progress::kWantRead;
        ALLRING_RETURN_IF_ERROR(take_greeting());
        step_ = Step::kWriteGreeting;
        break;
      }
      case Step::kWriteGreeting: {
        ALLRING_ASSIGN_OR_RETURN(const bool whole, write_message(kGreetingBytes));
        if (!whole) return Progress::kWantWrite;
        // The client of another version has been told ours.
        ALLRING_RETURN_IF_ERROR(refusal_);
        step_ = Step::kReadProof;
        break;
      }
      case Step::kReadProof: {
        ALLRING_ASSIGN_OR_RETURN(const bool whole, read_message(kClientProofBytes));
        if (!whole) return Progress::kWantRead;
        take_proof();
        step_ = Step::kWriteVerdict;
        break;
      }
      case Step::kWriteVerdict: {
        ALLRING_ASSIGN_OR_RETURN(const bool whole, write_message(kVerdictBytes));
        if (!whole) return Progress::kWantWrite;
        ALLRING_RETURN_IF_ERROR(refusal_);
        step_ = Step::kDone;
        break;
      }
      case Step::kDone:
        return Progress::kDone;
    }
  }
}

Result<bool> ServerHandshake::read_message(std::size_t bytes) {
  while (moved_ < bytes) {
    const ssize_t moved = recv(fd_, message_.data() + moved_, bytes - moved_, 0);
    if (moved == 0) return Status(StatusCode::kPeerLost, "the client closed the connection");
    if (moved < 0 && errno == EAGAIN) return false;
    if (moved < 0 && errno != EINTR) {
      return Status::from_errno("cannot read from a client", errno, StatusCode::kPeerLost);
    }
    if (moved > 0) moved_ += static_cast<std::size_t>(moved);
    // Do not wait for the rest of what cannot be a greeting.
    if (step_ == Step::kReadGreeting &&
        std::memcmp(message_.data(), kMagic, std::min(moved_, sizeof(kMagic))) != 0) {
      return Status::invalid_argument("the client is not a process of Allring");
    }
  }
  moved_ = 0;
  return true;
}

Result<bool> ServerHandshake::write_message(std::size_t bytes) {
  while (moved_ < bytes) {
    const ssize_t moved = send(fd_, message_.data() + moved_, bytes - moved_, MSG_NOSIGNAL);
    if (moved < 0 && errno == EAGAIN) return false;
    if (moved < 0 && errno != EINTR) {
      return Status::from_errno("cannot write to a client", errno, StatusCode::kPeerLost);
    }
    if (moved > 0) moved_ += static_cast<std::size_t>(moved);
  }
  moved_ = 0;
  return true;
}

Status ServerHandshake::take_greeting() {
  refusal_ = read_greeting(message_.data(), nonces_.data());
  return write_greeting(message_.data(), nonces_.data() + kNonceBytes);
}

void ServerHandshake::take_proof() {
  std::array<std::byte, kHelloBytes> said;
  std::memcpy(said.data(), message_.data(), kHelloBytes);
  hello_ = get_hello(said.data());
  const bool proven = equal(client_proof(secret_, nonces_, said), message_.data() + kHelloBytes);
  message_.fill(std::byte{0});
  if (!proven) {
    // No proof of ours for a stranger.
    put_u32(message_.data(), static_cast<std::uint32_t>(Verdict::kUnproven));
    refusal_ = Status::invalid_argument("the client does not know this job's secret");
    return;
  }
  const std::string reason = check_ ? check_(hello_) : std::string();
  put_u32(message_.data(),
          static_cast<std::uint32_t>(reason.empty() ? Verdict::kWelcome : Verdict::kTurnedAway));
  std::memcpy(message_.data() + 4 + kProofBytes, reason.data(),
              std::min(reason.size(), kReasonBytes));
  const Proof proof =
      server_proof(secret_, nonces_, said, std::span(message_).first<kVerdictBytes>());
  std::memcpy(message_.data() + 4, proof.data(), kProofBytes);
  if (!reason.empty()) refusal_ = Status::invalid_argument(reason);
}

}  // namespace allring
