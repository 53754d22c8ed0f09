#include <algorithm>
#include <charconv>
#include <numeric>

#include "runtime/rendezvous/job_secret.h"
#include "runtime/rendezvous/slurm_list.h"
#include "runtime/rendezvous/starters.h"

namespace allring {

namespace {

// Numbers from here on are not job steps but the batch script, an interactive shell and their like
// (SLURM_BATCH_SCRIPT and others in slurm.h).
constexpr std::uint32_t kFirstSpecialStep = 0xfffffff0;

// Where rank 0 looks for a free port, and the others for rank 0.
constexpr int kFirstPort = 20000;
constexpr int kPorts = 10000;
constexpr int kPortStride = 997;  // prime to kPorts
constexpr int kPortsTried = 8;

std::optional<std::string> step_id(const Variables& variables) {
  std::optional<std::string> id = variables.text("SLURM_STEP_ID");
  if (!id) id = variables.text("SLURM_STEPID");
  return id;
}

bool real_step(const Variables& variables) {
  const std::string id = step_id(variables).value_or("");
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  return !id.empty() && error == std::errc() && end == id.data() + id.size() &&
         number < kFirstSpecialStep;
}

std::string size_variable(const Variables& variables) {
  return variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
}

Result<std::vector<std::string>> step_hosts(const Variables& variables) {
  ALLRING_ASSIGN_OR_RETURN(const std::string text, variables.required_text("SLURM_STEP_NODELIST"));
  auto hosts = expand_slurm_hosts(text);
  if (!hosts) return variables.invalid("SLURM_STEP_NODELIST", "a list of hosts like n[01-04],x1");
  return *std::move(hosts);
}

// Which ranks this host and the others have; see Topology for what cross means.
Status read_places(const Variables& variables, std::size_t hosts, JobDescription* job) {
  const std::string kTasks = "SLURM_STEP_TASKS_PER_NODE";
  ALLRING_ASSIGN_OR_RETURN(job->local_rank,
                           variables.number_or("SLURM_LOCALID", 0, job->size - 1, -1));
  job->local_size = job->cross_rank = job->cross_size = -1;
  if (!variables.has(kTasks)) return {};
  const auto tasks = expand_slurm_tasks(*variables.text(kTasks));
  if (!tasks || tasks->size() != hosts ||
      std::accumulate(tasks->begin(), tasks->end(), std::int64_t{0}) != job->size)
    return variables.invalid(kTasks, "a list like 2(x3),1 for the " + std::to_string(hosts) +
                                         " hosts of the step, with " + std::to_string(job->size) +
                                         " tasks in all");
  ALLRING_ASSIGN_OR_RETURN(const int host,
                           variables.number("SLURM_NODEID", 0, static_cast<int>(hosts) - 1));
  job->local_size = (*tasks)[host];
  if (job->local_rank < 0) return {};
  if (job->local_rank >= job->local_size)
    return variables.invalid(
        "SLURM_LOCALID",
        "less than the host's " + std::to_string(job->local_size) + " tasks in " + kTasks);
  const auto has_peer = [&](int count) { return count > job->local_rank; };
  job->cross_rank =
      static_cast<int>(std::count_if(tasks->begin(), tasks->begin() + host, has_peer));
  job->cross_size = static_cast<int>(std::count_if(tasks->begin(), tasks->end(), has_peer));
  return {};
}

std::vector<std::string> candidates(const std::string& host, const std::string& job_id) {
  const std::string hash = sha256(job_id);
  int start = 0;
  for (int i = 0; i < 3; ++i) start = start * 256 + static_cast<unsigned char>(hash[i]);
  std::vector<std::string> result;
  for (int i = 0; i < kPortsTried; ++i) {
    const int port = kFirstPort + (start + i * kPortStride) % kPorts;
    result.push_back("tcp:" + host + ":" + std::to_string(port));
  }
  return result;
}

}  // namespace

bool started_by_slurm(const Variables& variables) {
  // In a batch script or an interactive shell SLURM_PROCID may be there, but srun has started
  // nothing yet.
  if (!variables.has("SLURM_PROCID")) return false;
  if (step_id(variables)) return real_step(variables);
  return variables.text("SLURM_STEP_NUM_TASKS").value_or("1") != "1";
}

Result<JobDescription> describe_slurm(const Variables& variables) {
  JobDescription job;
  ALLRING_RETURN_IF_ERROR(
      read_numbers(variables, {"SLURM_PROCID", size_variable(variables), "", "", "", ""}, &job));
  const auto job_number = variables.text("SLURM_JOB_ID");
  job.job_id =
      make_job_id("slurm", job_number.value_or("0") + "." + step_id(variables).value_or("0"));
  if (job.size == 1) return job;
  if (!job_number) return variables.invalid("SLURM_JOB_ID", "the job's number, as Slurm sets it");
  ALLRING_ASSIGN_OR_RETURN(const std::vector<std::string> hosts, step_hosts(variables));
  ALLRING_RETURN_IF_ERROR(read_places(variables, hosts.size(), &job));
  if (hosts.size() == 1) {
    meet_on_one_host(&job);
    return job;
  }
  if (job.rank == 0 && variables.text("SLURM_NODEID").value_or("0") != "0")
    return Status::unsupported(
        "rank 0 is not on the first host of SLURM_STEP_NODELIST, where the other ranks look for it "
        "(SLURM_NODEID is " +
        *variables.text("SLURM_NODEID") + "): use srun's block or cyclic distribution, or hvdrun");
  job.store_candidates = candidates(hosts.front(), job.job_id);
  job.serves_store = job.rank == 0;
  job.single_host = false;
  return job;
}

}  // namespace allring
