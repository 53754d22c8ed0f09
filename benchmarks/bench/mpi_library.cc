#include "benchmarks/bench/mpi_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

namespace allring::bench {

namespace {

constexpr const char* kPlugin = "liballring_mpi.so";
constexpr std::string_view kTuning[] = {
    "OMPI_MCA_coll",      "OMPI_MCA_btl",       "OMPI_MCA_pml=", "OMPI_MCA_mtl=",
    "OMPI_MCA_mpi_leave", "OMPI_MCA_mpi_yield", "MALLOC_",
};

bool readable(const std::filesystem::path& file) { return access(file.c_str(), R_OK) == 0; }

}  // namespace

std::string find_mpi_plugin(const std::string& program) {
  if (const char* set = std::getenv("ALLRING_MPI_LIBRARY"); set != nullptr && *set != '\0')
    return set;
  const std::filesystem::path folder = std::filesystem::path(program).parent_path();
  std::vector<std::filesystem::path> places = {folder / kPlugin,
                                               folder / "../bindings/mpi" / kPlugin};
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "../lib", ignored))
    places.push_back(entry.path() / "site-packages/allring/lib" / kPlugin);
  const auto found = std::find_if(places.begin(), places.end(), readable);
  return found == places.end() ? places.front().string() : found->string();
}

std::string mpi_tuning() {
  std::vector<std::string> settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (std::any_of(std::begin(kTuning), std::end(kTuning),
                    [&](std::string_view prefix) { return text.starts_with(prefix); }))
      settings.emplace_back(text);
  }
  std::sort(settings.begin(), settings.end());
  std::string line;
  for (const std::string& setting : settings) line += (line.empty() ? "" : " ") + setting;
  return line;
}

Result<MpiCollectives> MpiCollectives::open() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr)
    return Status::invalid_argument(
        "--against openmpi compares on the ranks that mpirun starts: mpirun -np 2 hvdbench ...");
  std::error_code ignored;
  const std::string path =
      find_mpi_plugin(std::filesystem::read_symlink("/proc/self/exe", ignored).string());
  // Open MPI's plugins look for its symbols among the global ones.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr)
    return Status::unsupported(std::string("--against openmpi needs liballring_mpi.so: ") +
                               dlerror() + "; set ALLRING_MPI_LIBRARY to its path");
  const auto open = reinterpret_cast<decltype(&allring_mpi_collectives_open)>(
      dlsym(handle, "allring_mpi_collectives_open"));
  MpiCollectives mpi;
  mpi.collective_ =
      reinterpret_cast<decltype(&allring_mpi_collective)>(dlsym(handle, "allring_mpi_collective"));
  if (open == nullptr || mpi.collective_ == nullptr)
    return Status::unsupported(path + " is not of this version");
  std::array<char, 512> error{};
  std::array<char, 512> library{};
  if (open(&mpi.rank_, &mpi.size_, library.data(), library.size(), error.data(), error.size()) != 0)
    return Status::unsupported(std::string("MPI: ") + error.data());
  mpi.library_ = std::string(library.data());
  mpi.library_ = mpi.library_.substr(0, mpi.library_.find(','));
  return mpi;
}

Status MpiCollectives::run(int kind, const void* input, void* output, std::size_t count, int dtype,
                           int op, int root) const {
  std::array<char, 512> error;
  if (collective_(kind, input, output, count, dtype, op, root, error.data(), error.size()) == 0)
    return {};
  return Status::unsupported(std::string("MPI: ") + error.data());
}

}  // namespace allring::bench
