// Open MPI's mpirun, and the mpiexec of MPICH and its kin.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "runtime/rendezvous/starters.h"

namespace allring {

namespace {

constexpr int kMostAncestors = 64;

struct Process {
  std::string command;
  pid_t parent = 0;
  std::string start_time;
};

// proc(5): pid (comm) state ppid ... with starttime as field 22; comm may hold anything.
std::optional<Process> read_process(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return std::nullopt;
  Process process;
  process.command = line.substr(open + 1, close - open - 1);
  std::istringstream fields(line.substr(close + 1));
  std::string field;
  for (int number = 3; number <= 22 && fields >> field; ++number) {
    if (number == 4) process.parent = std::atoi(field.c_str());
    if (number == 22) process.start_time = field;
  }
  return process;
}

// Hydra gives its jobs no name that all ranks see; but all ranks of a host descend from one
// proxy, possibly through shells.
std::string hydra_proxy() {
  std::string parent = std::to_string(getppid());
  pid_t pid = getppid();
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    const std::optional<Process> process = read_process(pid);
    if (!process) break;
    const std::string name = std::to_string(pid) + "." + process->start_time;
    if (process->command.starts_with("hydra") || process->command.starts_with("mpiexec"))
      return name;
    if (i == 0) parent = name;
    pid = process->parent;
  }
  return parent;
}

}  // namespace

bool started_by_open_mpi(const Variables& variables) {
  return variables.has("OMPI_COMM_WORLD_RANK");
}

Result<JobDescription> describe_open_mpi(const Variables& variables) {
  JobDescription job;
  ALLRING_RETURN_IF_ERROR(
      read_numbers(variables,
                   {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                    "OMPI_COMM_WORLD_LOCAL_SIZE", "", ""},
                   &job));
  std::optional<std::string> name = variables.text("PMIX_NAMESPACE");
  if (!name) name = variables.text("OMPI_MCA_ess_base_jobid");
  if (!name && job.size > 1)
    return variables.invalid("PMIX_NAMESPACE", "the job's name, as mpirun sets it");
  job.job_id = make_job_id("openmpi", name.value_or("single"));
  if (job.local_size == job.size) {
    meet_on_one_host(&job);
    return job;
  }
  job.store_candidates = {"mpi:"};
  job.serves_store = job.rank == 0;
  job.single_host = false;
  return job;
}

bool started_by_pmi(const Variables& variables) {
  if (!variables.has("PMI_RANK")) return false;
  // srun --mpi=pmi2 sets the same variables, and Slurm's own say more. But an mpiexec may also run
  // its proxies as a Slurm step; then the numbers differ.
  const bool slurm = started_by_slurm(variables) &&
                     variables.text("PMI_RANK") == variables.text("SLURM_PROCID") &&
                     (variables.text("PMI_SIZE") == variables.text("SLURM_STEP_NUM_TASKS") ||
                      variables.text("PMI_SIZE") == variables.text("SLURM_NTASKS"));
  return !slurm;
}

Result<JobDescription> describe_pmi(const Variables& variables) {
  JobDescription job;
  ALLRING_RETURN_IF_ERROR(read_numbers(
      variables, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", ""}, &job));
  if (job.local_size >= 0 && job.local_size < job.size)
    return Status::unsupported("PMI_SIZE is " + std::to_string(job.size) +
                               ", but MPI_LOCALNRANKS, the ranks on this host, is " +
                               std::to_string(job.local_size) +
                               ": jobs that MPICH's mpiexec starts must be on one host; between "
                               "hosts use hvdrun, srun, torchrun or Open MPI's mpirun");
  job.job_id = make_job_id("pmi", variables.text("PMI_JOBID").value_or(hydra_proxy()));
  meet_on_one_host(&job);
  return job;
}

}  // namespace allring
