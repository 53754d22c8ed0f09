// NCCL's header is the one of a library that we can open: version 2.

#include <nccl.h>

#include <catch2/catch.hpp>

TEST_CASE("NCCL's header is of version 2") { CHECK(NCCL_MAJOR == 2); }
