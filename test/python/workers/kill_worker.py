"""Allreduces until a rank kills itself; the others must say which."""

import os
import pathlib
import signal
import sys
import time

import numpy as np

import allring as hvd

VICTIM = 2

folder = pathlib.Path(sys.argv[1])
hvd.init()
pids = hvd.allgather_object(os.getpid())
if hvd.rank() == 0:
    (folder / "job").write_text(" ".join([os.environ["ALLRING_JOB_ID"], *map(str, pids)]))
data = np.ones(300_000, np.float32)
try:
    for _ in range(20):
        hvd.allreduce(data, name="gradient")
    if hvd.rank() == VICTIM:
        # All others are in this allreduce, which starts as the last of them joins it.
        while len(list(folder.glob("submitted.*"))) < hvd.size() - 1:
            time.sleep(0.001)
        hvd.allreduce_async(data, name="gradient")
        (folder / "killed").write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    handle = hvd.allreduce_async(data, name="gradient")
    (folder / f"submitted.{hvd.rank()}").touch()
    hvd.synchronize(handle)
    while True:  # that one may have been done before
        hvd.allreduce(data, name="gradient")
except hvd.PeerLostError as error:
    (folder / f"error.{hvd.rank()}").write_text(f"{time.time()!r}\n{error.rank}\n{error}")
    try:
        hvd.allreduce(data)
    except hvd.HorovodInternalError:
        sys.exit(3)  # later calls fail, too
