#pragma once

#include <string>
#include <string_view>

#include "collectives/base/status.h"
#include "runtime/rendezvous/variables.h"

namespace allring {

/// SHA-256: 32 bytes.
std::string sha256(std::string_view text);

/// The first half of it as 32 hexadecimal digits, for names.
std::string short_hash(std::string_view text);

/// From ALLRING_SECRET_FILE: its content if that is 32 bytes, else the hash of it; else the hash
/// of ALLRING_SECRET or HOROVOD_SECRET_KEY; else empty.
/// @return kInvalidArgument if the file cannot be read, is empty or too long, or can be read by
///         other users. A file without a name, such as /proc/<pid>/fd/<n> of a memfd, is guarded by
///         the kernel's rules for /proc instead of by its mode.
Result<std::string> job_secret(const Variables& variables);

/// What connections over TCP are proven with: the secret; without one, the hash of the job's
/// name, which keeps jobs apart but holds off nobody who knows it.
std::string network_secret(const std::string& secret, const std::string& job_id);

}  // namespace allring
