#pragma once

#include <string>
#include <string_view>

#include "collectives/base/status.h"
#include "launcher/file_descriptor.h"

namespace allring {

/// The job's secret where only processes of this user can read it while this process lives: a
/// memfd that has no name in any file system and that children do not inherit.
class SecretFile {
 public:
  static Result<SecretFile> make(std::string_view secret);

  /// "/proc/PID/fd/N".
  std::string path() const;

 private:
  explicit SecretFile(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

}  // namespace allring
