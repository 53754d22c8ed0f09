#include "launcher/grpc_process.h"

#include <grpc/grpc.h>

#include <cstdlib>

namespace allring {

void keep_grpc() {
  // Fork support is for children that go on to use gRPC; ours only call exec.
  ::setenv("GRPC_ENABLE_FORK_SUPPORT", "0", 1);
  ::grpc_init();
}

}  // namespace allring
