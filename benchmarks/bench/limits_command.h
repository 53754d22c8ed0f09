#pragma once

namespace allring::bench {

/// `hvdbench limits`: what memory, processor and kernel of this host allow, between two processes.
/// Started alone: it makes the second process itself. @return the exit status.
int run_limits(int argc, char** argv);

}  // namespace allring::bench
