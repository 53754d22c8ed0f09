#include "runtime/rendezvous/job_secret.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "collectives/transport/socket.h"

namespace allring {

namespace {

constexpr std::size_t kLongestSecret = 4096;

Result<std::string> read_secret_file(const Variables& variables, const std::string& name,
                                     const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file || fstat(file.get(), &about) != 0)
    return variables.invalid(name, std::string("a readable file: ") + std::strerror(errno));
  if (!S_ISREG(about.st_mode)) return variables.invalid(name, "a regular file");
  if (about.st_nlink > 0 && (about.st_mode & 077) != 0)
    return variables.invalid(name, "a file that only its owner may read: chmod 600 it");
  std::string content(kLongestSecret + 1, '\0');
  std::size_t bytes = 0;
  for (;;) {
    const ssize_t got = pread(file.get(), content.data() + bytes, content.size() - bytes,
                              static_cast<off_t>(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return variables.invalid(name, std::string("a readable file: ") + std::strerror(errno));
    if (got == 0) break;
    bytes += static_cast<std::size_t>(got);
  }
  if (bytes == 0 || bytes > kLongestSecret)
    return variables.invalid(name, "a file of 1 to " + std::to_string(kLongestSecret) + " bytes");
  content.resize(bytes);
  return content;
}

}  // namespace

std::string sha256(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
}

std::string short_hash(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : sha256(text).substr(0, 16)) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

Result<std::string> job_secret(const Variables& variables) {
  if (const auto path = variables.text("ALLRING_SECRET_FILE")) {
    ALLRING_ASSIGN_OR_RETURN(std::string content,
                             read_secret_file(variables, "ALLRING_SECRET_FILE", *path));
    return content.size() == 32 ? content : sha256(content);
  }
  for (const char* name : {"ALLRING_SECRET", "HOROVOD_SECRET_KEY"})
    if (const auto text = variables.text(name)) return sha256(*text);
  return std::string();
}

std::string network_secret(const std::string& secret, const std::string& job_id) {
  return secret.empty() ? sha256("allring job " + job_id) : secret;
}

}  // namespace allring
