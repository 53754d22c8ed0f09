"""One rank ends by an exception; it is the cause, and what the others raise is a consequence."""

import sys

import numpy as np

import allring as hvd

hvd.init()
data = np.ones(300_000, np.float32)
try:
    for step in range(100):
        if hvd.rank() == 1 and step == 50:
            hvd.allreduce_async(data, name="gradient")  # still in flight
            raise KeyError("the cause")
        hvd.allreduce(data, name="gradient")
    hvd.barrier()
except hvd.PeerLostError as error:
    assert error.rank == 1, error
    sys.exit(7)
