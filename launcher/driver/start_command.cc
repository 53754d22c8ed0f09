#include "launcher/driver/start_command.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "launcher/local_host.h"
#include "launcher/protocol.h"

namespace allring {

namespace {

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const ssize_t got = ::getrandom(bytes.data() + have, count - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string to_hex(const std::string& bytes) {
  std::string hex;
  for (unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

std::string current_folder() {
  std::unique_ptr<char, decltype(&std::free)> folder(::getcwd(nullptr, 0), &std::free);
  return folder ? folder.get() : "/";
}

std::string plain(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

}  // namespace

JobIdentity JobIdentity::make() { return {to_hex(random_bytes(8)), random_bytes(32)}; }

launcher::DriverCommand start_command(const JobIdentity& job, const Arguments& arguments,
                                      const Placement& placement, std::size_t host_index,
                                      const Environment& environment,
                                      const std::string& master_address, int master_port) {
  const PlacedHost& placed = placement.hosts[host_index];
  launcher::DriverCommand command;
  launcher::Start& start = *command.mutable_start();
  start.set_job_id(job.id);
  start.set_secret(job.secret);
  start.set_host(placed.host.name);
  for (const std::string& word : arguments.command) start.add_argv(word);
  for (std::string& entry :
       placed.host.local ? environment.entries() : environment.portable_entries())
    start.add_inherited_environment(std::move(entry));
  start.set_keep_host_environment(!placed.host.local);
  if (!arguments.network_interfaces.empty())
    start.add_given_environment("ALLRING_NETWORK_INTERFACES=" + arguments.network_interfaces);
  if (arguments.start_timeout_given)
    start.add_given_environment("ALLRING_START_TIMEOUT=" + plain(arguments.start_timeout_seconds));
  for (const std::string& entry : arguments.environment) start.add_given_environment(entry);
  start.set_working_directory(arguments.working_directory.empty() ? current_folder()
                                                                  : arguments.working_directory);
  start.set_working_directory_is_given(!arguments.working_directory.empty());
  start.set_world_size(placement.size);
  start.set_hosts(static_cast<int>(placement.hosts.size()));
  start.set_host_index(static_cast<int>(host_index));
  for (const PlacedRank& rank : placed.ranks) {
    launcher::RankNumbers& numbers = *start.add_ranks();
    numbers.set_rank(rank.rank);
    numbers.set_local_rank(rank.local_rank);
    numbers.set_local_size(rank.local_size);
    numbers.set_cross_rank(rank.cross_rank);
    numbers.set_cross_size(rank.cross_size);
  }
  start.set_master_address(master_address);
  start.set_master_port(master_port);
  start.set_output_window_bytes(kOutputWindowBytes);
  start.set_watch_driver(!placed.host.local);
  return command;
}

std::string master_address(const Placement& placement) {
  if (placement.hosts.size() == 1) return "127.0.0.1";
  const Host& first = placement.hosts[0].host;
  if (!first.local) return first.name;
  // The name that means this host here may mean another, or nothing, elsewhere.
  const std::string address = own_address_towards(placement.hosts[1].host.name);
  return address.empty() ? own_hostname() : address;
}

}  // namespace allring
