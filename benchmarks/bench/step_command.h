#pragma once

namespace allring::bench {

/// `hvdbench step --model resnet50`: sums the gradients of one training step through the runtime,
/// and with --against openmpi through MPI tensor by tensor and in buckets, in turns. Collective
/// over the job's ranks. @return the exit status: 1 also if a sum was wrong.
int run_step(int argc, char** argv);

}  // namespace allring::bench
