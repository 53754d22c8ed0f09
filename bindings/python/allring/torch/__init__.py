"""Allring for PyTorch, with Horovod's names and meanings.

Example, for ``hvdrun -np 4 python train.py``::

    import torch
    import allring.torch as hvd

    hvd.init()
    model = torch.nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    # train as usual, each rank on its own part of the data
"""

# ruff: noqa: F401 - what is imported here is the interface

from .. import (
    AbortedError,
    Adasum,
    Average,
    HorovodInternalError,
    HostsUpdatedInterrupt,
    InternalError,
    InvalidArgumentError,
    Max,
    Min,
    MismatchError,
    OutOfMemoryError,
    PeerLostError,
    ProcessSet,
    Product,
    ReduceOp,
    Sum,
    TimedOutError,
    UnsupportedError,
    __version__,
    ccl_built,
    cross_rank,
    cross_size,
    cuda_built,
    ddl_built,
    describe,
    global_process_set,
    gloo_built,
    gloo_enabled,
    init,
    is_homogeneous,
    is_initialized,
    local_rank,
    local_size,
    mpi_built,
    mpi_enabled,
    mpi_threads_supported,
    nccl_built,
    poll,
    rank,
    rocm_built,
    shutdown,
    size,
    synchronize,
)
from .compression import Compression
from .differentiable import (
    allgather,
    allreduce,
    alltoall,
    broadcast,
    grouped_allgather,
    grouped_allreduce,
    grouped_reducescatter,
    reducescatter,
)
from .functions import (
    allgather_object,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from .ops import (
    allgather_async,
    allreduce_,
    allreduce_async,
    allreduce_async_,
    alltoall_async,
    barrier,
    broadcast_,
    broadcast_async,
    broadcast_async_,
    grouped_allgather_async,
    grouped_allreduce_,
    grouped_allreduce_async,
    grouped_allreduce_async_,
    grouped_reducescatter_async,
    reducescatter_async,
)
from .optimizer import DistributedOptimizer
