#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/base/options.h"
#include "collectives/base/status.h"
#include "collectives/base/types.h"

namespace allring {

/// Who this process is within its job and how it finds the others, read from the environment.
struct JobDescription {
  /// Which convention the environment speaks.
  enum class Source { kSingle, kHvdrun, kOpenMpi, kSlurm, kTorchrun, kPmi };

  Source source = Source::kSingle;
  Rank rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
  int cross_rank = 0;
  int cross_size = 1;
  /// Unique among the jobs of this user on these hosts.
  std::string job_id;
  /// Where the store is: "unix:@name" (abstract socket), "tcp:host:port" candidates to be tried in
  /// order, "mpi:" (rank 0's address travels by MPI), or "memory:" for one rank.
  std::vector<std::string> store_candidates;
  /// This process must serve the store itself (rank 0 of a job without hvdrun).
  bool serves_store = false;
  /// All ranks are on one host for sure: nothing may listen on a routable address.
  bool single_host = true;
  /// The job's secret, 32 bytes, or empty where the starter gave none.
  std::string secret;
  std::string hostname;
};

/// Pure over `lookup` but for the hostname and, where named by the environment, the secret's file.
/// In order of precedence: ALLRING_RANK.. (hvdrun), OMPI_COMM_WORLD_RANK (Open MPI), PMI_RANK
/// (MPICH and kin), SLURM_PROCID with SLURM_NTASKS inside a step, RANK and WORLD_SIZE (torchrun
/// style), HOROVOD_RANK with HOROVOD_SIZE, nothing (one rank).
/// @return kInvalidArgument naming a missing or malformed variable.
Result<JobDescription> describe_job(const Options::Lookup& lookup);

}  // namespace allring
