#include "benchmarks/bench/plot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "benchmarks/bench/plot_script.h"

namespace allring::bench {

namespace {

/// A file without a name, for a child to read or write as /dev/fd/N.
class Scratch {
 public:
  explicit Scratch(const std::string& text) : descriptor_(memfd_create("hvdbench", 0)) {
    if (descriptor_ < 0) return;
    (void)!write(descriptor_, text.data(), text.size());
    lseek(descriptor_, 0, SEEK_SET);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { close(descriptor_); }
  int descriptor() const { return descriptor_; }
  std::string path() const { return "/dev/fd/" + std::to_string(descriptor_); }
  std::string text() const {
    std::string text;
    char block[4096];
    lseek(descriptor_, 0, SEEK_SET);
    for (ssize_t got = 0; (got = read(descriptor_, block, sizeof(block))) > 0;)
      text.append(block, static_cast<std::size_t>(got));
    return text;
  }

 private:
  int descriptor_;
};

std::string find_python() {
  std::error_code ignored;
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "python3";
  return access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

/// Runs plot.py; what it says goes into the status.
Status run_script(const std::vector<std::string>& arguments) {
  const Scratch script(kPlotScript);
  const Scratch said("");
  std::vector<std::string> words = {find_python(), script.path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, said.descriptor(), 1);
  posix_spawn_file_actions_adddup2(&actions, said.descriptor(), 2);
  pid_t child = -1;
  const int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Status::unsupported("--plot needs python3 with matplotlib: " +
                               std::string(strerror(error)));
  int how = 0;
  while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return {};
  return Status::unsupported(last_line(said.text()));
}

}  // namespace

Status can_plot() { return run_script({"--check"}); }

Status plot(const std::string& json, const std::string& file) {
  const Scratch results(json);
  return run_script({results.path(), file});
}

}  // namespace allring::bench
