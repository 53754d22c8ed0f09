// torchrun and what follows its convention, and horovodrun, whose variables are used the same way.
#include "runtime/rendezvous/starters.h"

namespace allring {

namespace {

constexpr int kPortsTried = 16;
constexpr int kLargestPort = 65535;

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// Rank 0's host is known, and one port of it: which is left to the framework's own store, or to the
// starter's, as long as another one near it is free.
std::vector<std::string> candidates(std::string host, int port, bool port_is_taken) {
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  std::vector<std::string> result;
  for (int i = 1; i <= kPortsTried; ++i) {
    const int other = port + i <= kLargestPort ? port + i : port - i;
    result.push_back("tcp:" + host + ":" + std::to_string(other));
  }
  if (!port_is_taken) result.push_back("tcp:" + host + ":" + std::to_string(port));
  return result;
}

Status meet_at(const Variables& variables, const std::string& host_variable,
               const std::string& port_variable, bool port_is_taken, const std::string& starter,
               const std::string& run, JobDescription* job) {
  if (job->size == 1) {
    job->job_id = make_job_id(starter, run);
    return {};
  }
  ALLRING_ASSIGN_OR_RETURN(const int port, variables.number(port_variable, 1, kLargestPort));
  job->job_id = make_job_id(starter, std::to_string(port) + "-" + run);
  const bool one_host = job->local_size == job->size;
  std::string host;
  if (!one_host) {
    ALLRING_ASSIGN_OR_RETURN(host, variables.required_text(host_variable));
  }
  if (one_host || is_loopback(host)) {
    // Ranks in other groups on this host may use the same local rank.
    if (!one_host) job->local_rank = -1;
    meet_on_one_host(job);
    return {};
  }
  job->store_candidates = candidates(host, port, port_is_taken);
  job->serves_store = job->rank == 0;
  job->single_host = false;
  return {};
}

}  // namespace

bool started_by_torchrun(const Variables& variables) {
  // RANK alone is too common a name to mean anything.
  const int present = (variables.has("RANK") ? 1 : 0) + (variables.has("WORLD_SIZE") ? 1 : 0);
  return present == 2 || (present == 1 && variables.has("MASTER_ADDR"));
}

Result<JobDescription> describe_torchrun(const Variables& variables) {
  JobDescription job;
  ALLRING_RETURN_IF_ERROR(read_numbers(
      variables,
      {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"},
      &job));
  const std::string agent = variables.text("TORCHELASTIC_USE_AGENT_STORE").value_or("");
  ALLRING_RETURN_IF_ERROR(meet_at(variables, "MASTER_ADDR", "MASTER_PORT",
                                  agent == "True" || agent == "1", "torchrun",
                                  variables.text("TORCHELASTIC_RUN_ID").value_or("none"), &job));
  return job;
}

bool started_by_horovodrun(const Variables& variables) {
  return variables.has("HOROVOD_RANK") && variables.has("HOROVOD_SIZE");
}

Result<JobDescription> describe_horovodrun(const Variables& variables) {
  JobDescription job;
  ALLRING_RETURN_IF_ERROR(
      read_numbers(variables,
                   {"HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE",
                    "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE"},
                   &job));
  // The port is the driver's own server.
  ALLRING_RETURN_IF_ERROR(meet_at(variables, "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                                  "HOROVOD_GLOO_RENDEZVOUS_PORT", true, "horovod", "run", &job));
  return job;
}

}  // namespace allring
