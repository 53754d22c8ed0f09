#include "runtime/rendezvous/job.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "runtime/rendezvous/job_secret.h"
#include "runtime/rendezvous/starters.h"
#include "runtime/rendezvous/store_address.h"

namespace allring {

namespace {

struct Starter {
  JobDescription::Source source;
  bool (*present)(const Variables&);
  Result<JobDescription> (*describe)(const Variables&);
};

using Source = JobDescription::Source;

constexpr Starter kStarters[] = {
    {Source::kHvdrun, started_by_hvdrun, describe_hvdrun},
    {Source::kOpenMpi, started_by_open_mpi, describe_open_mpi},
    {Source::kPmi, started_by_pmi, describe_pmi},
    {Source::kSlurm, started_by_slurm, describe_slurm},
    {Source::kTorchrun, started_by_torchrun, describe_torchrun},
    {Source::kHorovod, started_by_horovodrun, describe_horovodrun},
};

constexpr std::size_t kLongestName = 60;

std::string this_hostname(const Variables& variables) {
  for (const char* name : {"ALLRING_HOSTNAME", "HOROVOD_HOSTNAME", "SLURMD_NODENAME"})
    if (auto hostname = variables.text(name)) return *hostname;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown-host";
  return name.data();
}

Result<JobDescription> describe(const Variables& variables) {
  for (const Starter& starter : kStarters) {
    if (!starter.present(variables)) continue;
    ALLRING_ASSIGN_OR_RETURN(JobDescription job, starter.describe(variables));
    job.source = starter.source;
    return job;
  }
  JobDescription alone;
  alone.job_id = make_job_id("single", std::to_string(getpid()));
  return alone;
}

}  // namespace

std::string_view job_source_name(JobDescription::Source source) {
  switch (source) {
    case Source::kSingle:
      return "no launcher";
    case Source::kHvdrun:
      return "hvdrun";
    case Source::kOpenMpi:
      return "Open MPI";
    case Source::kPmi:
      return "PMI";
    case Source::kSlurm:
      return "Slurm";
    case Source::kTorchrun:
      return "torchrun";
    case Source::kHorovod:
      return "horovodrun";
  }
  return "unknown";
}

Result<JobDescription> describe_job(const Options::Lookup& lookup) {
  const Variables variables(lookup);
  ALLRING_ASSIGN_OR_RETURN(JobDescription job, describe(variables));
  ALLRING_ASSIGN_OR_RETURN(job.secret, job_secret(variables));
  job.hostname = this_hostname(variables);
  if (job.size == 1) {
    job.local_rank = job.cross_rank = 0;
    job.local_size = job.cross_size = 1;
    job.store_candidates = {"memory:"};
    job.serves_store = false;
    job.single_host = true;
  }
  return job;
}

std::string make_job_id(std::string_view starter, std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '.' || c == '_';
  });
  std::string id(starter);
  id += '-';
  id += plain && name.size() <= kLongestName ? std::string(name) : short_hash(name);
  return id;
}

std::string unix_store_address(const std::string& job_id) {
  StoreAddress address;
  address.is_unix = true;
  address.name = "allring-" + std::to_string(geteuid()) + "-" + job_id;
  return address.to_string();
}

void meet_on_one_host(JobDescription* job) {
  job->store_candidates = {unix_store_address(job->job_id)};
  job->serves_store = job->rank == 0;
  job->single_host = true;
  if (job->local_rank < 0) job->local_rank = job->rank;
  job->local_size = job->size;
  job->cross_rank = 0;
  job->cross_size = 1;
}

}  // namespace allring
