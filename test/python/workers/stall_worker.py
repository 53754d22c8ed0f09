"""Rank 0 submits what nobody else does, and everybody learns that in time."""

import pathlib
import sys
import time

import numpy as np

import allring as hvd

stalled = pathlib.Path(sys.argv[1])
hvd.init()
if hvd.rank() == 0:
    try:
        hvd.allreduce(np.ones(4), name="only.rank.0")
    except hvd.TimedOutError as error:
        text = str(error)
        assert "only.rank.0" in text and "1" in text, text
        print("stalled:", text)
    else:
        sys.exit("no error")
    stalled.touch()
else:
    while not stalled.exists():
        time.sleep(0.05)
# Nothing is broken.
assert hvd.allreduce(np.ones(2), op=hvd.Sum, name="all").tolist() == [hvd.size()] * 2
hvd.shutdown()
