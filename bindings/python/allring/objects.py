"""Sends Python objects between ranks, by pickle.

Unpickling runs code that the sender chooses. It is done only with bytes that came through the
runtime, whose ranks have proved to each other that they know the job's secret. docs/options.md says
when a job has none but its name.
"""

import pickle

import numpy as np

from . import numpy_ops
from .basics import rank
from .errors import HorovodInternalError
from .process_sets import global_process_set

# Sent as the size by a rank that could not pickle its object, so that nobody waits for it.
_FAILED = -1


def _pickled(obj):
    """The object's bytes, or the exception that says why there are none."""
    try:
        return pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        return error


def _names(name):
    return (None, None) if name is None else (f"{name}.sz", f"{name}.t")


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """The object of one rank, on all ranks.

    Args:
        obj: anything that pickle takes, of any size; it matters on `root_rank` only.
        root_rank: the rank in the whole job.
        name: ranks must agree about it; None numbers the call.

    Returns:
        On `root_rank` `obj` itself, elsewhere a copy.

    Raises:
        HorovodInternalError: the root could not pickle it; there its own exception is raised.

    Example::

        settings = allring.broadcast_object(settings, root_rank=0)
    """
    size_name, payload_name = _names(name)
    is_root = rank() == root_rank
    payload = _pickled(obj) if is_root else b""
    failed = isinstance(payload, Exception)
    announced = np.array(_FAILED if failed else len(payload), np.int64)
    numpy_ops.broadcast_(announced, root_rank, size_name, process_set)
    if failed:
        raise payload
    if announced < 0:
        raise HorovodInternalError(
            f"broadcast_object: rank {root_rank} could not pickle its object, see its error"
        )
    data = np.frombuffer(bytearray(payload), np.uint8) if is_root else np.empty(announced, np.uint8)
    numpy_ops.broadcast_(data, root_rank, payload_name, process_set)
    return obj if is_root else pickle.loads(data)


def allgather_object(obj, name=None, process_set=global_process_set):
    """The objects of all ranks, as a list in rank order.

    Args:
        obj: anything that pickle takes, of any size; ranks may give different ones.
        name: ranks must agree about it; None numbers the call.

    Raises:
        HorovodInternalError: a rank could not pickle its object; there its own exception is raised.
    """
    size_name, payload_name = _names(name)
    payload = _pickled(obj)
    failed = isinstance(payload, Exception)
    sizes = numpy_ops.allgather(
        np.array([_FAILED if failed else len(payload)], np.int64), size_name, process_set
    )
    if failed:
        raise payload
    if (sizes < 0).any():
        raise HorovodInternalError(
            f"allgather_object: rank {int(np.argmin(sizes))} could not pickle its object; its own "
            "error says why"
        )
    data = numpy_ops.allgather(np.frombuffer(payload, np.uint8), payload_name, process_set)
    ends = np.cumsum(sizes).tolist()
    return [pickle.loads(data[end - length : end]) for end, length in zip(ends, sizes.tolist())]
