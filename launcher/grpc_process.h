#pragma once

namespace allring {

/// Makes this process one that uses gRPC until it ends. To be called once, before any other thread
/// exists: after signals have been blocked, as gRPC's threads inherit that, and after the
/// environment has been read, which this changes.
///
/// gRPC's own end, with its last object, may wait 10 s for a poller that nobody needs any more;
/// this keeps it from coming. A process leaves by _exit then, as threads of gRPC's are still there.
void keep_grpc();

}  // namespace allring
