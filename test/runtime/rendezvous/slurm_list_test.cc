#include "runtime/rendezvous/slurm_list.h"

#include <catch2/catch.hpp>

namespace allring {
namespace {

using Hosts = std::vector<std::string>;

TEST_CASE("lists of hosts") {
  CHECK(expand_slurm_hosts("n1") == Hosts{"n1"});
  CHECK(expand_slurm_hosts("n[01-04,7],x1") == Hosts{"n01", "n02", "n03", "n04", "n7", "x1"});
  CHECK(expand_slurm_hosts("n[098-101]") == Hosts{"n098", "n099", "n100", "n101"});
  CHECK(expand_slurm_hosts("r[1-2]n[3,5]-ib") == Hosts{"r1n3-ib", "r1n5-ib", "r2n3-ib", "r2n5-ib"});
  CHECK(expand_slurm_hosts("gpu-a,b.example") == Hosts{"gpu-a", "b.example"});
  CHECK(expand_slurm_hosts("n[1-4096]")->size() == 4096);
  for (const char* text : {"", ",", "a,", "n[", "n]", "n[]", "n[1-]", "n[4-1]", "n[a-b]", "n[[1]]",
                           "n[1", "n[1,]", "n[1-99999999]", "n[1-2000]m[1-2000]"}) {
    INFO(text);
    CHECK(!expand_slurm_hosts(text));
  }
}

TEST_CASE("lists of tasks") {
  CHECK(expand_slurm_tasks("4") == std::vector<int>{4});
  CHECK(expand_slurm_tasks("2(x3),1") == std::vector<int>{2, 2, 2, 1});
  for (const char* text : {"", "x", "2(x3", "2(3)", "2(x)", "2,", "-1", "1(x99999999)"}) {
    INFO(text);
    CHECK(!expand_slurm_tasks(text));
  }
}

}  // namespace
}  // namespace allring
