"""Waits for a rank that never comes; ^C must end the wait."""

import sys
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
        assert not hvd.poll(handle)  # it may be waited for again
        print("interrupted", flush=True)
        hvd.shutdown()
        sys.exit(0)
    sys.exit("not interrupted")
time.sleep(60)
