#include "launcher/output/rank_files.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace allring {

Result<RankFiles> RankFiles::open(const std::string& directory, int size) {
  RankFiles files;
  const std::size_t width = std::to_string(size - 1).size();
  for (int rank = 0; rank < size; ++rank) {
    std::string number = std::to_string(rank);
    number.insert(0, width - number.size(), '0');
    const std::string folder = directory + "/rank." + number;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      return Status::invalid_argument("--output-filename: cannot make the folder " + folder + ": " +
                                      error.message());
    for (OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr}) {
      const std::string path = folder + (stream == OutputStream::kStdout ? "/stdout" : "/stderr");
      FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      if (!fd)
        return Status::from_errno("--output-filename: cannot write " + path, errno,
                                  StatusCode::kInvalidArgument);
      files.files_.emplace(std::pair(rank, stream), std::move(fd));
    }
  }
  return files;
}

Status RankFiles::write(int rank, OutputStream stream, std::string_view bytes) {
  auto file = files_.find({rank, stream});
  if (file == files_.end() || !file->second) return {};
  Status status = write_all(file->second.get(), bytes);
  if (status.ok()) return {};
  file->second.reset();
  return status.with_prefix("output file of rank " + std::to_string(rank) + ": ");
}

}  // namespace allring
