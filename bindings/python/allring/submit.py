"""Gives collectives to the library: addresses, shapes and type numbers, and no framework.

Each function returns the library's handle, for handles.start(), or raises what the library says
against the call. Shapes are sequences of int, `dtype` is a value of _library.DTYPES, and
addresses are int.
"""

import ctypes

from . import _library, errors
from .process_sets import native_id
from .reduce_ops import ReduceOp

_library_allreduce = _library.library.allring_allreduce_async


def _name(name):
    if name is None:
        return None  # the library numbers unnamed calls
    if not isinstance(name, str) or "\0" in name:
        raise errors.InvalidArgumentError(f"a name must be a str without NUL, got {name!r}")
    return name.encode()


def _extents(shape):
    return (ctypes.c_int64 * len(shape))(*shape)


def _checked_op(op):
    if not isinstance(op, ReduceOp):
        try:
            op = ReduceOp(op)
        except ValueError:
            raise errors.InvalidArgumentError(
                f"op must be one of Average, Sum, Min, Max and Product, got {op!r}"
            ) from None
    if op is ReduceOp.Adasum:
        raise errors.UnsupportedError(
            "op=Adasum is not available in this version: use Average with a learning rate that is "
            "scaled by size()"
        )
    return op


def allreduce(name, source, target, shape, dtype, op, prescale, postscale, process_set):
    handle = ctypes.c_int64()
    _library.check(
        _library_allreduce(
            _name(name),
            source,
            target,
            len(shape),
            _extents(shape),
            dtype,
            _checked_op(op),
            prescale,
            postscale,
            native_id(process_set),
            ctypes.byref(handle),
        )
    )
    return handle.value


def allgather(name, source, shape, dtype, process_set):
    handle = ctypes.c_int64()
    _library.check(
        _library.library.allring_allgather_async(
            _name(name),
            source,
            len(shape),
            _extents(shape),
            dtype,
            native_id(process_set),
            ctypes.byref(handle),
        )
    )
    return handle.value


def broadcast(name, source, target, shape, dtype, root_rank, process_set):
    handle = ctypes.c_int64()
    _library.check(
        _library.library.allring_broadcast_async(
            _name(name),
            source,
            target,
            len(shape),
            _extents(shape),
            dtype,
            root_rank,
            native_id(process_set),
            ctypes.byref(handle),
        )
    )
    return handle.value


def alltoall(name, source, shape, dtype, splits, process_set):
    """`splits`: a sequence of rows for each rank, or None for equal parts."""
    splits = () if splits is None else splits
    handle = ctypes.c_int64()
    _library.check(
        _library.library.allring_alltoall_async(
            _name(name),
            source,
            len(shape),
            _extents(shape),
            dtype,
            len(splits),
            _extents(splits),
            native_id(process_set),
            ctypes.byref(handle),
        )
    )
    return handle.value


def received_splits(native, process_set):
    """Rows that a finished alltoall got from each rank, a list."""
    splits = (ctypes.c_int64 * process_set.size())()
    _library.check(_library.library.allring_received_splits(native, splits))
    return list(splits)


def reducescatter(name, source, shape, dtype, op, prescale, postscale, process_set):
    handle = ctypes.c_int64()
    _library.check(
        _library.library.allring_reduce_scatter_async(
            _name(name),
            source,
            len(shape),
            _extents(shape),
            dtype,
            _checked_op(op),
            prescale,
            postscale,
            native_id(process_set),
            ctypes.byref(handle),
        )
    )
    return handle.value


def barrier(process_set):
    handle = ctypes.c_int64()
    _library.check(
        _library.library.allring_barrier_async(native_id(process_set), ctypes.byref(handle))
    )
    return handle.value


def grouped(kind, name, members, process_set, op=ReduceOp.Sum, prescale=1.0, postscale=1.0):
    """`kind`: a KIND_* of _library; `members`: pairs of (source, target or None, shape, dtype)."""
    if not members:
        raise errors.InvalidArgumentError("a group needs at least one tensor")
    tensors = (_library.Tensor * len(members))()
    for tensor, (source, target, shape, dtype) in zip(tensors, members):
        tensor.struct_bytes = ctypes.sizeof(_library.Tensor)
        tensor.input = source
        tensor.output = target
        tensor.ndim = len(shape)
        tensor.shape = _extents(shape)
        tensor.dtype = dtype
    handle = ctypes.c_int64()
    _library.check(
        _library.library.allring_grouped_async(
            kind,
            _name(name),
            len(members),
            tensors,
            _checked_op(op),
            prescale,
            postscale,
            0,
            native_id(process_set),
            ctypes.byref(handle),
        )
    )
    return handle.value
