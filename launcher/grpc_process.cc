#include "launcher/grpc_process.h"

#include <grpc/grpc.h>

#include <cstdlib>

#ifdef __SANITIZE_THREAD__
// The system's gRPC is not instrumented, so that of two accesses which it orders, as before and in
// a callback, the sanitizer sees no order. Those in its headers are compiled into us.
extern "C" const char* __tsan_default_suppressions() {
  return "race:libgrpc\nrace:grpc::internal::\n";
}
#endif

namespace allring {

void keep_grpc() {
  // Fork support is for children that go on to use gRPC; ours only call exec.
  ::setenv("GRPC_ENABLE_FORK_SUPPORT", "0", 1);
  ::grpc_init();
}

}  // namespace allring
