#pragma once

#include <string>
#include <string_view>

#include "collectives/base/status.h"
#include "runtime/rendezvous/job.h"
#include "runtime/rendezvous/variables.h"

namespace allring {

// One pair per way of starting a job: whether the environment speaks its convention, and what it
// says. describe_...() leaves secret and hostname to describe_job(), and need not treat jobs of
// one rank apart. Errors as describe_job().

bool started_by_hvdrun(const Variables& variables);
Result<JobDescription> describe_hvdrun(const Variables& variables);

bool started_by_open_mpi(const Variables& variables);
Result<JobDescription> describe_open_mpi(const Variables& variables);

bool started_by_pmi(const Variables& variables);
Result<JobDescription> describe_pmi(const Variables& variables);

bool started_by_slurm(const Variables& variables);
Result<JobDescription> describe_slurm(const Variables& variables);

bool started_by_torchrun(const Variables& variables);
Result<JobDescription> describe_torchrun(const Variables& variables);

bool started_by_horovodrun(const Variables& variables);
Result<JobDescription> describe_horovodrun(const Variables& variables);

/// "<starter>-<name>", with a hash in place of a name that is long or has unusual characters.
std::string make_job_id(std::string_view starter, std::string_view name);

/// The abstract unix socket of this user's job: what ranks of one host meet at.
std::string unix_store_address(const std::string& job_id);

/// Ranks of one host, without a launcher's store: rank 0 serves one on a unix socket.
void meet_on_one_host(JobDescription* job);

}  // namespace allring
