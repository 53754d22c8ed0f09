"""Leaves and joins the job many times; no descriptor and no thread may stay behind."""

import os
import sys
import time

import numpy as np

import allring as hvd


def held():
    """Open descriptors, and threads."""
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def settle(most):
    """Waits for threads that were joined to leave the system's tables, which takes a moment."""
    deadline = time.monotonic() + 10
    while held()[1] > most and time.monotonic() < deadline:
        time.sleep(0.001)


def use():
    hvd.init()
    total = hvd.allreduce(np.ones(1000), op=hvd.Sum)
    assert total[0] == hvd.size()
    kept = hvd.allgather(np.arange(5.0), name="kept")
    hvd.allreduce_async(np.ones(10), name="never synchronized")
    done = hvd.allreduce_async(np.ones(10), name="synchronized too late")
    hvd.barrier()
    hvd.shutdown()
    hvd.shutdown()  # does nothing
    try:
        hvd.synchronize(done)
    except hvd.AbortedError:
        pass
    else:
        sys.exit("no AbortedError")
    return kept


before = held()
kept = [use() for _ in range(int(sys.argv[1]))]
settle(before[1])
after = held()
# What the library gave outlives it.
assert all(array[:5].tolist() == [0, 1, 2, 3, 4] for array in kept)
assert after[0] <= before[0] + 2 and after[1] <= before[1], (before, after)
try:
    hvd.rank()
except ValueError as error:
    assert "init()" in str(error)
else:
    sys.exit("no ValueError")
try:
    hvd.allreduce(np.ones(1))
except ValueError:
    pass
else:
    sys.exit("no ValueError")
