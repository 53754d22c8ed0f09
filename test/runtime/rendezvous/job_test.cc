// What each starter's environment says, good and bad.
#include "runtime/rendezvous/job.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "runtime/rendezvous/job_secret.h"

namespace allring {
namespace {

using Environment = std::map<std::string, std::string>;
using Source = JobDescription::Source;

Result<JobDescription> describe(const Environment& environment) {
  return describe_job([&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

JobDescription good(const Environment& environment) {
  auto job = describe(environment);
  INFO(job.status().to_string());
  REQUIRE(job.ok());
  return *job;
}

// The message must name the variable.
void bad(const Environment& environment, const std::string& variable) {
  const Status status = describe(environment).status();
  INFO(status.to_string());
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(status.message().find(variable) != std::string::npos);
}

Environment with(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment[name] = value;
  return environment;
}

Environment without(Environment environment, const std::string& name) {
  environment.erase(name);
  return environment;
}

void check_numbers(const JobDescription& job, std::vector<int> expected) {
  CHECK(std::vector<int>{job.rank, job.size, job.local_rank, job.local_size, job.cross_rank,
                         job.cross_size} == expected);
}

std::string socket_of(const std::string& job_id) {
  return "unix:@allring-" + std::to_string(geteuid()) + "-" + job_id;
}

TEST_CASE("nothing in the environment is one rank") {
  const JobDescription job = good({});
  CHECK(job.source == Source::kSingle);
  check_numbers(job, {0, 1, 0, 1, 0, 1});
  CHECK(job.store_candidates == std::vector<std::string>{"memory:"});
  CHECK(!job.serves_store);
  CHECK(job.single_host);
  CHECK(job.secret == "");
  CHECK(job.hostname != "");
}

const Environment kHvdrun = {{"ALLRING_RANK", "3"},
                             {"ALLRING_SIZE", "4"},
                             {"ALLRING_LOCAL_RANK", "1"},
                             {"ALLRING_LOCAL_SIZE", "2"},
                             {"ALLRING_CROSS_RANK", "1"},
                             {"ALLRING_CROSS_SIZE", "2"},
                             {"ALLRING_JOB_ID", "job-7"},
                             {"ALLRING_STORE", "unix:@allring-job-7-99"},
                             {"ALLRING_HOSTNAME", "b"},
                             {"ALLRING_SECRET", "psst"},
                             {"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"HOROVOD_RANK", "3"},
                             {"HOROVOD_SIZE", "4"}};

TEST_CASE("hvdrun goes before the variables that it sets for others") {
  const JobDescription job = good(kHvdrun);
  CHECK(job.source == Source::kHvdrun);
  check_numbers(job, {3, 4, 1, 2, 1, 2});
  CHECK(job.job_id == "job-7");
  CHECK(job.store_candidates == std::vector<std::string>{"unix:@allring-job-7-99"});
  CHECK(!job.serves_store);
  CHECK(!job.single_host);
  CHECK(job.hostname == "b");
  CHECK(job.secret == sha256("psst"));
  CHECK(good(with(kHvdrun, {{"ALLRING_SINGLE_HOST", "1"}})).single_host);
}

TEST_CASE("hvdrun's variables, malformed") {
  bad(without(kHvdrun, "ALLRING_SIZE"), "ALLRING_SIZE is not set");
  bad(with(kHvdrun, {{"ALLRING_RANK", "4"}}), "ALLRING_RANK=\"4\"");
  bad(with(kHvdrun, {{"ALLRING_RANK", "x"}}), "ALLRING_RANK=\"x\"");
  bad(with(kHvdrun, {{"ALLRING_SIZE", "0"}}), "ALLRING_SIZE=\"0\"");
  bad(with(kHvdrun, {{"ALLRING_LOCAL_RANK", "2"}}), "ALLRING_LOCAL_RANK=\"2\"");
  bad(with(kHvdrun, {{"ALLRING_CROSS_RANK", "-1"}}), "ALLRING_CROSS_RANK=\"-1\"");
  bad(without(kHvdrun, "ALLRING_JOB_ID"), "ALLRING_JOB_ID");
  bad(without(kHvdrun, "ALLRING_STORE"), "ALLRING_STORE");
  bad(with(kHvdrun, {{"ALLRING_STORE", "http://x"}}), "ALLRING_STORE");
  bad(with(kHvdrun, {{"ALLRING_SINGLE_HOST", "yes"}}), "ALLRING_SINGLE_HOST");
}

const Environment kOpenMpi = {
    {"OMPI_COMM_WORLD_RANK", "1"},       {"OMPI_COMM_WORLD_SIZE", "2"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
    {"PMIX_NAMESPACE", "752222209"},     {"PMIX_RANK", "1"}};

TEST_CASE("Open MPI on one host needs no MPI") {
  const JobDescription job = good(kOpenMpi);
  CHECK(job.source == Source::kOpenMpi);
  check_numbers(job, {1, 2, 1, 2, 0, 1});
  CHECK(job.store_candidates == std::vector<std::string>{socket_of("openmpi-752222209")});
  CHECK(!job.serves_store);
  CHECK(job.single_host);
  CHECK(good(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}})).serves_store);
  const Environment old =
      with(without(kOpenMpi, "PMIX_NAMESPACE"), {{"OMPI_MCA_ess_base_jobid", "12"}});
  CHECK(good(old).job_id == "openmpi-12");
  // Names that no socket can have are hashed.
  CHECK(good(with(kOpenMpi, {{"PMIX_NAMESPACE", std::string(200, 'x')}})).job_id.size() < 64);
}

TEST_CASE("Open MPI on several hosts uses MPI to meet") {
  const JobDescription job = good(with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "4"}}));
  check_numbers(job, {1, 4, 1, 2, -1, -1});
  CHECK(job.store_candidates == std::vector<std::string>{"mpi:"});
  CHECK(!job.single_host);
  bad(without(kOpenMpi, "PMIX_NAMESPACE"), "PMIX_NAMESPACE");
  bad(without(kOpenMpi, "OMPI_COMM_WORLD_SIZE"), "OMPI_COMM_WORLD_SIZE");
}

const Environment kPmi = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_FD", "7"}};

TEST_CASE("MPICH's mpiexec works within one host") {
  const JobDescription job = good(kPmi);
  CHECK(job.source == Source::kPmi);
  check_numbers(job, {1, 2, 1, 2, 0, 1});
  CHECK(job.single_host);
  CHECK(good(with(kPmi, {{"PMI_RANK", "0"}})).store_candidates == job.store_candidates);
  const Status several =
      describe(with(kPmi, {{"MPI_LOCALNRANKS", "1"}, {"MPI_LOCALRANKID", "0"}})).status();
  CHECK(several.code() == StatusCode::kUnsupported);
  CHECK(several.message().find("MPI_LOCALNRANKS") != std::string::npos);
  bad(without(kPmi, "PMI_SIZE"), "PMI_SIZE");
}

const Environment kSlurm = {{"SLURM_PROCID", "5"},
                            {"SLURM_STEP_NUM_TASKS", "7"},
                            {"SLURM_NTASKS", "16"},
                            {"SLURM_LOCALID", "1"},
                            {"SLURM_NODEID", "2"},
                            {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                            {"SLURM_STEP_NODELIST", "n[01-03],x9"},
                            {"SLURM_JOB_ID", "4711"},
                            {"SLURM_STEP_ID", "3"},
                            {"SLURMD_NODENAME", "n03"}};

TEST_CASE("a Slurm step over several hosts") {
  const JobDescription job = good(kSlurm);
  CHECK(job.source == Source::kSlurm);
  check_numbers(job, {5, 7, 1, 2, 2, 3});
  CHECK(job.job_id == "slurm-4711.3");
  CHECK(job.hostname == "n03");
  CHECK(!job.single_host);
  CHECK(!job.serves_store);
  REQUIRE(job.store_candidates.size() == 8);
  for (const std::string& candidate : job.store_candidates) {
    CHECK(candidate.starts_with("tcp:n01:2"));
    CHECK(candidate.size() == std::string("tcp:n01:20000").size());
  }
  const JobDescription root =
      good(with(kSlurm, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "0"}}));
  CHECK(root.serves_store);
  CHECK(root.store_candidates == job.store_candidates);
  check_numbers(root, {0, 7, 0, 2, 0, 4});
  CHECK(good(with(kSlurm, {{"SLURM_STEP_ID", "4"}})).store_candidates != job.store_candidates);
  // srun --mpi=pmi2 sets these too.
  CHECK(good(with(kSlurm, {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}})).source == Source::kSlurm);
  // mpiexec's proxies, started as a step.
  CHECK(good(with(kSlurm, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})).source == Source::kPmi);
}

TEST_CASE("a Slurm step on one host meets at a unix socket") {
  const JobDescription job = good(with(kSlurm, {{"SLURM_STEP_NODELIST", "n07"},
                                                {"SLURM_STEP_TASKS_PER_NODE", "7"},
                                                {"SLURM_LOCALID", "5"},
                                                {"SLURM_NODEID", "0"}}));
  check_numbers(job, {5, 7, 5, 7, 0, 1});
  CHECK(job.store_candidates == std::vector<std::string>{socket_of("slurm-4711.3")});
  CHECK(job.single_host);
}

TEST_CASE("what runs in a Slurm allocation outside of a step is one rank") {
  CHECK(good(with(kSlurm, {{"SLURM_STEP_ID", "4294967291"}})).source == Source::kSingle);
  const Environment batch = without(without(kSlurm, "SLURM_STEP_ID"), "SLURM_STEP_NUM_TASKS");
  CHECK(good(batch).source == Source::kSingle);
  const Environment single = with(kSlurm, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}});
  check_numbers(good(single), {0, 1, 0, 1, 0, 1});
}

TEST_CASE("Slurm's variables, malformed") {
  bad(with(kSlurm, {{"SLURM_PROCID", "7"}}), "SLURM_PROCID=\"7\"");
  bad(with(kSlurm, {{"SLURM_STEP_NODELIST", "n[01"}}), "SLURM_STEP_NODELIST=\"n[01\"");
  bad(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(x4)"}}), "SLURM_STEP_TASKS_PER_NODE");
  bad(with(kSlurm, {{"SLURM_LOCALID", "2"}}), "SLURM_LOCALID");
  bad(with(kSlurm, {{"SLURM_NODEID", "4"}}), "SLURM_NODEID");
  bad(without(kSlurm, "SLURM_STEP_NODELIST"), "SLURM_STEP_NODELIST");
  bad(without(kSlurm, "SLURM_JOB_ID"), "SLURM_JOB_ID");
  CHECK(describe(with(kSlurm, {{"SLURM_PROCID", "0"}})).status().code() ==
        StatusCode::kUnsupported);
}

const Environment kTorchrun = {{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"GROUP_RANK", "1"},
                               {"GROUP_WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "a.example"},
                               {"MASTER_PORT", "29500"},
                               {"TORCHELASTIC_RUN_ID", "run7"}};

TEST_CASE("torchrun's variables over several hosts") {
  const JobDescription job = good(kTorchrun);
  CHECK(job.source == Source::kTorchrun);
  check_numbers(job, {5, 8, 1, 4, 1, 2});
  CHECK(job.job_id == "torchrun-29500-run7");
  REQUIRE(job.store_candidates.size() == 17);
  CHECK(job.store_candidates.front() == "tcp:a.example:29501");
  CHECK(job.store_candidates.back() == "tcp:a.example:29500");
  CHECK(!job.serves_store);
  CHECK(!job.single_host);
  const JobDescription root = good(with(kTorchrun, {{"RANK", "0"},
                                                    {"MASTER_ADDR", "fd00::7"},
                                                    {"MASTER_PORT", "65535"},
                                                    {"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  CHECK(root.serves_store);
  CHECK(root.store_candidates.size() == 16);
  CHECK(root.store_candidates.front() == "tcp:[fd00::7]:65534");
  const Environment few = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  check_numbers(good(few), {1, 2, -1, -1, -1, -1});
}

TEST_CASE("torchrun's variables on one host meet at a unix socket") {
  const JobDescription all_local =
      good(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "8"}, {"LOCAL_RANK", "5"}}));
  CHECK(all_local.store_candidates == std::vector<std::string>{socket_of("torchrun-29500-run7")});
  check_numbers(all_local, {5, 8, 5, 8, 0, 1});
  CHECK(all_local.single_host);
  for (const char* loopback : {"localhost", "127.0.0.1", "::1"}) {
    const JobDescription job = good(with(kTorchrun, {{"MASTER_ADDR", loopback}}));
    CHECK(job.single_host);
    check_numbers(job, {5, 8, 5, 8, 0, 1});
  }
}

TEST_CASE("torchrun's variables, malformed") {
  bad(with(kTorchrun, {{"RANK", "8"}}), "RANK=\"8\"");
  bad(without(kTorchrun, "RANK"), "RANK");
  bad(without(kTorchrun, "WORLD_SIZE"), "WORLD_SIZE");
  bad(without(kTorchrun, "MASTER_ADDR"), "MASTER_ADDR");
  bad(without(kTorchrun, "MASTER_PORT"), "MASTER_PORT");
  bad(with(kTorchrun, {{"MASTER_PORT", "65536"}}), "MASTER_PORT=\"65536\"");
  CHECK(good({{"RANK", "7"}}).source == Source::kSingle);
  check_numbers(good({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), {0, 1, 0, 1, 0, 1});
}

TEST_CASE("horovodrun's variables") {
  const Environment horovod = {{"HOROVOD_RANK", "2"},
                               {"HOROVOD_SIZE", "4"},
                               {"HOROVOD_LOCAL_RANK", "0"},
                               {"HOROVOD_LOCAL_SIZE", "2"},
                               {"HOROVOD_CROSS_RANK", "1"},
                               {"HOROVOD_CROSS_SIZE", "2"},
                               {"HOROVOD_HOSTNAME", "b"},
                               {"HOROVOD_SECRET_KEY", "key"},
                               {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.0.1"},
                               {"HOROVOD_GLOO_RENDEZVOUS_PORT", "4000"}};
  const JobDescription job = good(horovod);
  CHECK(job.source == Source::kHorovod);
  check_numbers(job, {2, 4, 0, 2, 1, 2});
  CHECK(job.store_candidates.front() == "tcp:10.0.0.1:4001");
  CHECK(job.secret == sha256("key"));
  CHECK(job.hostname == "b");
  bad(without(horovod, "HOROVOD_GLOO_RENDEZVOUS_PORT"), "HOROVOD_GLOO_RENDEZVOUS_PORT");
}

TEST_CASE("the secret's file must be readable by its owner only, unless it has no name") {
  const std::string path =
      std::string(std::getenv("TEST_TMPDIR") ? std::getenv("TEST_TMPDIR") : "/tmp") +
      "/allring-secret-" + std::to_string(getpid());
  const auto write = [&](const std::string& content, mode_t mode) {
    unlink(path.c_str());
    std::ofstream(path) << content;
    REQUIRE(chmod(path.c_str(), mode) == 0);
  };
  const Environment environment = {{"ALLRING_SECRET_FILE", path}, {"ALLRING_SECRET", "ignored"}};
  const std::string raw(32, '\1');
  write(raw, 0600);
  CHECK(good(environment).secret == raw);
  write("words\n", 0400);
  CHECK(good(environment).secret == sha256("words\n"));
  write(raw, 0640);
  bad(environment, "chmod 600");
  write("", 0600);
  bad(environment, "ALLRING_SECRET_FILE");
  write(std::string(5000, 'x'), 0600);
  bad(environment, "4096");
  unlink(path.c_str());
  bad(environment, path);
  bad({{"ALLRING_SECRET_FILE", "/dev/null"}}, "regular");

  const int memory = memfd_create("secret", MFD_CLOEXEC);
  REQUIRE(memory >= 0);
  REQUIRE(::write(memory, raw.data(), raw.size()) == 32);
  const std::string nameless =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(memory);
  CHECK(good({{"ALLRING_SECRET_FILE", nameless}}).secret == raw);
  close(memory);
  unlink(path.c_str());
}

}  // namespace
}  // namespace allring
