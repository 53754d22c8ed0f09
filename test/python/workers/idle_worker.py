"""Measures how much processor time a rank uses while nothing is to do."""

import sys
import time

import numpy as np

import allring as hvd

hvd.init()
hvd.allreduce(np.ones(10))
hvd.barrier()
wall, cpu = time.monotonic(), time.process_time()
time.sleep(float(sys.argv[1]))
share = (time.process_time() - cpu) / (time.monotonic() - wall)
print(f"idle share {share:.4f}")
assert share < 0.01, share
# Also while it waits for a rank that is not there yet.
handle = hvd.allreduce_async(np.ones(3), name="late") if hvd.rank() == 0 else None
if handle is None:
    time.sleep(float(sys.argv[1]))
    handle = hvd.allreduce_async(np.ones(3), name="late")
    hvd.synchronize(handle)
else:
    wall, cpu = time.monotonic(), time.process_time()
    hvd.synchronize(handle)
    share = (time.process_time() - cpu) / (time.monotonic() - wall)
    print(f"waiting share {share:.4f}")
    assert share < 0.05, share
hvd.shutdown()
