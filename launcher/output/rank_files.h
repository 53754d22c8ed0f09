#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "collectives/base/status.h"
#include "launcher/file_descriptor.h"
#include "launcher/output/output_mux.h"

namespace allring {

/// The files of --output-filename: DIR/rank.N/stdout and DIR/rank.N/stderr, N padded with zeros to
/// the width of the largest rank. They hold the bytes of the rank, unchanged. Thread-compatible.
class RankFiles {
 public:
  /// Makes the folders and empties the files.
  /// @return kInvalidArgument with errno's words if that is not possible.
  static Result<RankFiles> open(const std::string& directory, int size);

  /// @return kInternal, once per file; later bytes for it are dropped.
  Status write(int rank, OutputStream stream, std::string_view bytes);

 private:
  std::map<std::pair<int, OutputStream>, FileDescriptor> files_;
};

}  // namespace allring
