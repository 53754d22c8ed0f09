#include <algorithm>

#include "runtime/rendezvous/starters.h"
#include "runtime/rendezvous/store_address.h"

namespace allring {

namespace {

// Comma separated, so that a list can be given by hand.
Result<std::vector<std::string>> store_list(const Variables& variables, const std::string& name) {
  ALLRING_ASSIGN_OR_RETURN(const std::string text, variables.required_text(name));
  std::vector<std::string> addresses;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    addresses.push_back(text.substr(at, comma - at));
    const Status parsed = StoreAddress::parse(addresses.back()).status();
    if (!parsed.ok()) return parsed.with_prefix(name + ": ");
    at = comma + 1;
  }
  return addresses;
}

}  // namespace

bool started_by_hvdrun(const Variables& variables) { return variables.has("ALLRING_RANK"); }

Result<JobDescription> describe_hvdrun(const Variables& variables) {
  JobDescription job;
  ALLRING_RETURN_IF_ERROR(
      read_numbers(variables,
                   {"ALLRING_RANK", "ALLRING_SIZE", "ALLRING_LOCAL_RANK", "ALLRING_LOCAL_SIZE",
                    "ALLRING_CROSS_RANK", "ALLRING_CROSS_SIZE"},
                   &job));
  ALLRING_ASSIGN_OR_RETURN(job.single_host, variables.flag_or("ALLRING_SINGLE_HOST", false));
  if (job.size == 1) {
    job.job_id = variables.text("ALLRING_JOB_ID").value_or("hvdrun");
    return job;
  }
  ALLRING_ASSIGN_OR_RETURN(job.job_id, variables.required_text("ALLRING_JOB_ID"));
  ALLRING_ASSIGN_OR_RETURN(job.store_candidates, store_list(variables, "ALLRING_STORE"));
  return job;
}

}  // namespace allring
