"""Rank 0 submits what nobody else does, and everybody learns that in time."""

import sys

import numpy as np

import allring as hvd

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
# The others waited here, and nothing is broken.
assert hvd.allreduce(np.ones(2), op=hvd.Sum, name="all").tolist() == [hvd.size()] * 2
hvd.shutdown()
