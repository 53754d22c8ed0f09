#include "runtime/rendezvous/mpi_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "collectives/base/check.h"

namespace allring {

namespace {

constexpr std::size_t kBlockBytes = 8192;
constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kErrorBytes = 512;

// Of the file that this code was linked into.
std::string beside_us(const std::string& name) {
  Dl_info about{};
  if (dladdr(reinterpret_cast<void*>(&beside_us), &about) == 0 || about.dli_fname == nullptr)
    return name;
  const std::string file = about.dli_fname;
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? name : file.substr(0, slash + 1) + name;
}

}  // namespace

Result<MpiLibrary> MpiLibrary::load(const std::string& path) {
  MpiLibrary library;
  library.path_ = path.empty() ? beside_us("liballring_mpi.so") : path;
  const auto failed = [&](const char* reason) {
    return Status::unsupported(
        "this job spans hosts and was started by mpirun, so its ranks find "
        "each other through MPI, but " +
        library.path_ + " cannot be loaded: " + reason +
        "; install Open MPI's library, set ALLRING_MPI_LIBRARY, or start "
        "the job with hvdrun");
  };
  // Open MPI's plugins look for its symbols among the global ones.
  void* const handle = dlopen(library.path_.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) return failed(dlerror());
  library.open_ = reinterpret_cast<decltype(library.open_)>(dlsym(handle, "allring_mpi_open"));
  library.broadcast_ =
      reinterpret_cast<decltype(library.broadcast_)>(dlsym(handle, "allring_mpi_broadcast"));
  if (library.open_ == nullptr || library.broadcast_ == nullptr)
    return failed("it is not of this version");
  return library;
}

Status MpiLibrary::open(int rank, int size) {
  std::array<char, kErrorBytes> error{};
  int mpi_rank = -1;
  int mpi_size = -1;
  if (open_(&mpi_rank, &mpi_size, error.data(), error.size()) != 0)
    return Status::unsupported(std::string("MPI: ") + error.data());
  if (mpi_rank == rank && mpi_size == size) return {};
  return Status::invalid_argument(
      "the environment says rank " + std::to_string(rank) + " of " + std::to_string(size) +
      ", but MPI says rank " + std::to_string(mpi_rank) + " of " + std::to_string(mpi_size) +
      ": is " + path_ + " built for the MPI whose mpirun started this job?");
}

Result<std::string> MpiLibrary::broadcast(std::string bytes, Deadline deadline) {
  ALLRING_CHECK(bytes.size() <= kBlockBytes - kLengthBytes, "a short text to broadcast");
  std::array<char, kBlockBytes> block{};
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::memcpy(block.data(), &length, sizeof(length));
  std::copy(bytes.begin(), bytes.end(), block.begin() + kLengthBytes);
  std::array<char, kErrorBytes> error{};
  const double left = std::chrono::duration<double>(deadline - Clock::real().now()).count();
  switch (broadcast_(block.data(), block.size(), left, error.data(), error.size())) {
    case 0:
      break;
    case 1:
      return Status::timed_out("rank 0's address did not come by MPI in time");
    default:
      return Status::unsupported(std::string("MPI: ") + error.data());
  }
  std::uint32_t got = 0;
  std::memcpy(&got, block.data(), sizeof(got));
  if (got > kBlockBytes - kLengthBytes) return Status::internal("MPI broadcast a broken block");
  return std::string(block.data() + kLengthBytes, got);
}

}  // namespace allring
