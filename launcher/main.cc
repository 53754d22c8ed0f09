#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "launcher/agent/agent.h"
#include "launcher/arguments.h"
#include "launcher/driver/driver.h"
#include "launcher/environment.h"
#include "launcher/file_descriptor.h"
#include "launcher/job_hosts.h"
#include "launcher/placement.h"

namespace {

int fail(const allring::Status& status) {
  std::fprintf(stderr, "hvdrun: %s\n", status.message().c_str());
  return 2;
}

int drive(const std::vector<std::string>& words, const allring::Environment& environment) {
  allring::Result<allring::ParsedArguments> parsed = allring::parse_arguments(words, environment);
  if (!parsed.ok()) return fail(parsed.status());
  if (parsed->print) {
    std::fputs(parsed->print->text.c_str(), stdout);
    return 0;
  }
  const allring::Arguments& arguments = parsed->arguments;
  allring::Result<allring::Placement> placement = allring::place_job(arguments);
  if (!placement.ok()) return fail(placement.status());
  if (arguments.dry_run) {
    std::string text = placement->to_string() + "command:";
    for (const std::string& word : arguments.command) text += " " + word;
    std::printf("%s\n", text.c_str());
    return 0;
  }
  return allring::run_driver(arguments, *placement, environment);
}

}  // namespace

int main(int argc, char** argv) {
  allring::fill_standard_descriptors();
  ::signal(SIGCHLD, SIG_DFL);  // ignored, it would lose the ends of our children
  const std::vector<std::string> words(argv + 1, argv + argc);
  const allring::Environment environment(environ);
  const bool agent = words.size() == 1 && words[0] == "--agent";
  const int exit_code = agent ? allring::run_agent(environment) : drive(words, environment);
  std::fflush(nullptr);
  ::_exit(exit_code);  // see keep_grpc()
}
