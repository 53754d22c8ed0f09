#include "launcher/agent/secret_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace allring {

Result<SecretFile> SecretFile::make(std::string_view secret) {
  FileDescriptor fd(::memfd_create("allring-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return Status::from_errno("memfd_create for the job's secret", errno);
  ALLRING_RETURN_IF_ERROR(write_all(fd.get(), secret));
  if (::fchmod(fd.get(), 0400) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
    return Status::from_errno("sealing the job's secret", errno);
  return SecretFile(std::move(fd));
}

std::string SecretFile::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_.get());
}

}  // namespace allring
