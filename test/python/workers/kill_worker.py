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
(folder / f"pid.{hvd.rank()}").write_text(str(os.getpid()))
data = np.ones(300_000, np.float32)
step = 0
try:
    while True:
        if hvd.rank() == VICTIM and step == 20:
            # In the middle: the others are in this allreduce, or will be.
            hvd.allreduce_async(data, name="gradient")
            (folder / "killed").write_text(repr(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)
        hvd.allreduce(data, name="gradient")
        step += 1
except hvd.PeerLostError as error:
    (folder / f"error.{hvd.rank()}").write_text(f"{time.time()!r}\n{error.rank}\n{error}")
    try:
        hvd.allreduce(data)
    except hvd.HorovodInternalError:
        sys.exit(3)  # later calls fail, too
