#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/base/status.h"

namespace allring {

/// A host of the job, as the user wrote it.
struct Host {
  std::string user;   ///< for ssh; empty: the default
  std::string name;   ///< host name, or address without brackets
  int slots = 1;      ///< ranks that it takes
  int max_slots = 0;  ///< ranks that it takes at most, with --oversubscribe too; 0: no limit
  bool local = false;
};

/// Parses what -H takes: "host", "host:slots", "user@host:slots", "[v6]:slots", separated by
/// commas. A host without slots has one for each time that it is named.
/// @return kInvalidArgument in one line.
Result<std::vector<Host>> parse_host_list(std::string_view text);

/// Parses a host file: a host per line, as in -H or followed by slots=N and max_slots=N (or
/// max-slots=N); # begins a comment.
/// @param file its name, for messages, which begin with "file:line: ".
Result<std::vector<Host>> parse_hostfile(std::string_view text, const std::string& file);

/// Fills in Host::local and joins entries of one host, adding their slots, in order of their first
/// mention. All entries that are local are one host.
/// @param is_local see is_local_host().
/// @return kInvalidArgument if one host is named with two users.
Result<std::vector<Host>> merge_hosts(const std::vector<Host>& hosts,
                                      const std::function<bool(const Host&)>& is_local);

}  // namespace allring
