#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collectives/base/options.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"

namespace allring {

/// Who this process is within its job and how it finds the others, read from the environment.
struct JobDescription {
  /// Which convention the environment speaks.
  enum class Source { kSingle, kHvdrun, kOpenMpi, kPmi, kSlurm, kTorchrun, kHorovod };

  Source source = Source::kSingle;
  Rank rank = 0;
  int size = 1;
  // -1 where the starter did not tell: derived from who shares a host with whom.
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
  /// Unique among the jobs of this user on these hosts.
  std::string job_id;
  /// Where the store is: "unix:@name" (abstract socket), "tcp:host:port" candidates to be tried in
  /// order, "mpi:" (rank 0's address travels by MPI), or "memory:" for one rank.
  std::vector<std::string> store_candidates;
  /// This process must serve the store itself (rank 0 of a job without hvdrun), on the first
  /// candidate that it can.
  bool serves_store = false;
  /// All ranks are on one host for sure: nothing may listen on a routable address.
  bool single_host = true;
  /// The job's secret, 32 bytes, or empty where the starter gave none.
  std::string secret;
  std::string hostname;
};

/// "hvdrun", "Open MPI", ...
std::string_view job_source_name(JobDescription::Source source);

/// Pure over `lookup` but for the hostname, the user id, the parent process (of MPICH's launchers,
/// which give a job no name) and, where named by the environment, the secret's file.
/// In order of precedence:
/// - ALLRING_RANK: hvdrun;
/// - OMPI_COMM_WORLD_RANK: Open MPI's mpirun. Ranks of one host meet without MPI;
/// - PMI_RANK: MPICH and its kin, one host only; not if Slurm set it;
/// - SLURM_PROCID, inside a job step;
/// - RANK and WORLD_SIZE: torchrun and what follows its convention;
/// - HOROVOD_RANK and HOROVOD_SIZE, with HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT as torchrun's
/// MASTER_*;
/// - otherwise one rank.
/// The secret is ALLRING_SECRET_FILE's content, else ALLRING_SECRET or HOROVOD_SECRET_KEY.
/// @return kInvalidArgument naming a missing or malformed variable, its value and what is
///         expected; kUnsupported for what a starter cannot do.
Result<JobDescription> describe_job(const Options::Lookup& lookup);

}  // namespace allring
