"""Waits for a rank that never comes; ^C must end the wait."""

import time

import numpy as np

import allring as hvd

hvd.init()
if hvd.rank() == 0:
    handle = hvd.allreduce_async(np.ones(3), name="never")
    print("waiting", flush=True)
    try:
        hvd.synchronize(handle)
    except KeyboardInterrupt:
        try:
            hvd.synchronize(handle)  # may be waited for again; rank 1 is being interrupted, too
        except hvd.HorovodInternalError:
            print("interrupted", flush=True)
else:
    time.sleep(60)
