#include "launcher/environment.h"

#include <catch2/catch.hpp>

namespace allring {
namespace {

using Entries = std::vector<std::string>;

TEST_CASE("reads and writes entries as bytes") {
  const char* entries[] = {"A=1", "B=", "C=a=b\n", "A=2", "none", "=x", "f%%=() { :; }", nullptr};
  const Environment environment(entries);
  CHECK(environment.entries() == Entries{"A=1", "B=", "C=a=b\n", "f%%=() { :; }"});
  CHECK(environment.find("C") == "a=b\n");
  CHECK(!environment.find("none"));
}

TEST_CASE("later settings win, defaults do not") {
  Environment environment;
  environment.set_entry("A=1");
  environment.set_entry("A=2");
  environment.set_default("A", "3");
  environment.set_default("B", "4");
  CHECK(environment.entries() == Entries{"A=2", "B=4"});
}

TEST_CASE("what speaks of the host stays there") {
  for (const char* name : {"HOME", "SSH_AUTH_SOCK", "DISPLAY", "XDG_RUNTIME_DIR", "TMPDIR",
                           "HOSTNAME", "CUDA_VISIBLE_DEVICES", "PWD"})
    CHECK(is_host_bound(name));
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "HOMEPAGE", "NCCL_DEBUG",
                           "LANG", "VIRTUAL_ENV", "ALLRING_LANES", "HVDRUN_X"})
    CHECK(!is_host_bound(name));
  Environment environment;
  environment.set("PATH", "/bin");
  environment.set("HOME", "/root");
  CHECK(environment.portable_entries() == Entries{"PATH=/bin"});
}

TEST_CASE("variables of a rank") {
  RankIdentity identity;
  identity.rank = 5;
  identity.size = 6;
  identity.local_rank = 1;
  identity.local_size = 2;
  identity.cross_rank = 2;
  identity.cross_size = 3;
  identity.host_index = 2;
  identity.hosts = 3;
  identity.host = "h2";
  identity.job_id = "j";
  identity.store_address = "unix:@s";
  identity.secret_file = "/proc/1/fd/3";
  identity.master_address = "h0";
  identity.master_port = 4711;
  identity.host_cores = 9;
  Environment environment;
  add_rank_variables(identity, &environment);
  CHECK(environment.entries() ==
        Entries{"ALLRING_CROSS_RANK=2",  "ALLRING_CROSS_SIZE=3",
                "ALLRING_HOSTNAME=h2",   "ALLRING_JOB_ID=j",
                "ALLRING_LOCAL_RANK=1",  "ALLRING_LOCAL_SIZE=2",
                "ALLRING_RANK=5",        "ALLRING_SECRET_FILE=/proc/1/fd/3",
                "ALLRING_SINGLE_HOST=0", "ALLRING_SIZE=6",
                "ALLRING_STORE=unix:@s", "GROUP_RANK=2",
                "HOROVOD_CROSS_RANK=2",  "HOROVOD_CROSS_SIZE=3",
                "HOROVOD_HOSTNAME=h2",   "HOROVOD_LOCAL_RANK=1",
                "HOROVOD_LOCAL_SIZE=2",  "HOROVOD_RANK=5",
                "HOROVOD_SIZE=6",        "LOCAL_RANK=1",
                "LOCAL_WORLD_SIZE=2",    "MASTER_ADDR=h0",
                "MASTER_PORT=4711",      "OMP_NUM_THREADS=4",
                "PYTHONUNBUFFERED=1",    "RANK=5",
                "WORLD_SIZE=6"});
}

TEST_CASE("threads and buffering are left as the user set them") {
  RankIdentity identity;
  identity.host_cores = 1;
  identity.local_size = 4;
  Environment environment;
  add_rank_variables(identity, &environment);
  CHECK(environment.find("OMP_NUM_THREADS") == "1");
  CHECK(environment.find("ALLRING_SINGLE_HOST") == "1");
  environment.set("OMP_NUM_THREADS", "7");
  environment.set("PYTHONUNBUFFERED", "");
  add_rank_variables(identity, &environment);
  CHECK(environment.find("OMP_NUM_THREADS") == "7");
  CHECK(environment.find("PYTHONUNBUFFERED") == "");
}

}  // namespace
}  // namespace allring
