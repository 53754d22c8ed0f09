"""Sums an array over all ranks: hvdrun -np 4 python examples/numpy_allreduce.py"""

import numpy as np

import allring

allring.init()
total = allring.allreduce(np.arange(4.0) * (allring.rank() + 1), op=allring.Sum)
print(f"rank {allring.rank()} of {allring.size()}: {total}")
