#include "launcher/job_hosts.h"

#include <cerrno>
#include <fstream>
#include <iterator>

#include "launcher/local_host.h"

namespace allring {

namespace {

Result<std::vector<Host>> read_hostfile(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.is_open() || stream.bad())
    return Status::from_errno("cannot read the host file " + file, errno,
                              StatusCode::kInvalidArgument);
  return parse_hostfile(text, file);
}

}  // namespace

Result<Placement> place_job(const Arguments& arguments) {
  std::vector<Host> hosts;
  for (const std::string& list : arguments.hosts) {
    ALLRING_ASSIGN_OR_RETURN(std::vector<Host> some, parse_host_list(list));
    hosts.insert(hosts.end(), some.begin(), some.end());
  }
  for (const std::string& file : arguments.hostfiles) {
    ALLRING_ASSIGN_OR_RETURN(std::vector<Host> some, read_hostfile(file));
    hosts.insert(hosts.end(), some.begin(), some.end());
  }
  if (hosts.empty()) {
    if (!arguments.num_proc)
      return Status::invalid_argument("say how many ranks to start: -np N, or -H host1:2,host2:2");
    return place({Host{"", own_hostname(), *arguments.num_proc, 0, true}}, arguments.num_proc,
                 false);
  }
  ALLRING_ASSIGN_OR_RETURN(const std::vector<Host> merged, merge_hosts(hosts, is_local_host));
  return place(merged, arguments.num_proc, arguments.oversubscribe);
}

}  // namespace allring
