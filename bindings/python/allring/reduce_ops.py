"""The reductions, with Horovod's names and numbers."""

import enum


class ReduceOp(enum.IntEnum):
    """How the ranks' values become one.

    Sums of float16 and bfloat16 accumulate in float32 and are rounded once. An average of
    integers is exact and truncated toward zero. On bool, Sum and Max are "or", Product and Min
    are "and".
    """

    Average = 0
    Sum = 1
    Adasum = 2
    Min = 3
    Max = 4
    Product = 5


Average = ReduceOp.Average
Sum = ReduceOp.Sum
Adasum = ReduceOp.Adasum
Min = ReduceOp.Min
Max = ReduceOp.Max
Product = ReduceOp.Product
