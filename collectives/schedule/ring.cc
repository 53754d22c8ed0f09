#include "collectives/schedule/ring.h"

#include "collectives/base/check.h"

namespace allring {

namespace {

int wrapped(int value, int size) { return (value % size + size) % size; }

RingStep step_from(Rank rank, int size, int step, int first_chunk) {
  ALLRING_CHECK(rank >= 0 && rank < size, "rank out of range");
  ALLRING_CHECK(step >= 0 && step < ring_steps(size), "step out of range");
  return {wrapped(rank + 1, size), wrapped(rank - 1, size), wrapped(first_chunk - step, size),
          wrapped(first_chunk - step - 1, size)};
}

}  // namespace

int ring_steps(int size) { return size - 1; }

RingStep ring_reduce_scatter_step(Rank rank, int size, int step) {
  // Starting at rank - 1, the walk backwards ends at chunk `rank`.
  return step_from(rank, size, step, rank - 1);
}

RingStep ring_allgather_step(Rank rank, int size, int step) {
  return step_from(rank, size, step, rank);
}

}  // namespace allring
