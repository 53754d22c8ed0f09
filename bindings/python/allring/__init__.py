"""Allring trains one model on many processes.

This package has the collectives for numpy arrays and Python objects; ``allring.torch`` has them for
PyTorch, with a distributed optimizer. Names and meanings are Horovod's.

Example, for ``hvdrun -np 4 python example.py``::

    import numpy as np
    import allring

    allring.init()
    print(allring.rank(), allring.allreduce(np.arange(3.0), op=allring.Sum))
"""

# ruff: noqa: F401 - what is imported here is the interface

from ._library import library as _native_library
from .basics import (
    cross_rank,
    cross_size,
    describe,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
)
from .capabilities import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    rocm_built,
)
from .errors import (
    AbortedError,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    InternalError,
    InvalidArgumentError,
    MismatchError,
    OutOfMemoryError,
    PeerLostError,
    TimedOutError,
    UnsupportedError,
)
from .handles import Handle, poll, synchronize
from .numpy_ops import (
    allgather,
    allgather_async,
    allreduce,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall,
    alltoall_async,
    barrier,
    broadcast,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather,
    grouped_allgather_async,
    grouped_allreduce,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter,
    grouped_reducescatter_async,
    reducescatter,
    reducescatter_async,
)
from .objects import allgather_object, broadcast_object
from .process_sets import ProcessSet, global_process_set
from .reduce_ops import Adasum, Average, Max, Min, Product, ReduceOp, Sum

__version__ = _native_library.allring_version().decode()
