"""Collectives on numpy arrays.

Every function is called by all ranks, with equal arguments where nothing else is said. What they
share:

- Arrays may be anything that ``numpy.asarray`` takes, of dtype bool, uint8, int8, uint16, int16,
  int32, int64, float16, float32, float64, or bfloat16 (of the package ml_dtypes); other dtypes are
  a ValueError. Memory that is not dense and in C order is copied.
- A name tells which calls of the ranks belong together, so ranks may start operations in different
  orders. It must be unique among what is in flight. Unnamed calls are numbered, so ranks must
  make those in the same order.
- ``*_async`` forms return a handle at once, for :func:`allring.synchronize`. Until then the input
  must not be changed.
- Forms that end in ``_`` put the result into the array that they are given, which must be writable.
  If it is not dense, it gets the result when the operation is synchronized.
- Calls that differ between ranks raise MismatchError on all of them; a lost rank raises
  PeerLostError, a rank that does not come TimedOutError.
"""

from functools import partial

import numpy as np

from . import _library, handles, submit
from .errors import InvalidArgumentError
from .process_sets import global_process_set
from .reduce_ops import Average

_CODES = {np.dtype(name): code for name, code in _library.DTYPES.items() if name != "bfloat16"}


def _code(dtype):
    code = _CODES.get(dtype)
    if code is None:
        if dtype.name != "bfloat16":
            raise InvalidArgumentError(
                f"arrays of dtype {dtype} are not supported: "
                f"convert to one of {', '.join(_library.DTYPES)}, in this machine's byte order"
            )
        code = _CODES[dtype] = _library.DTYPES["bfloat16"]
    return code


def _dense(array):
    """`array` as an aligned ndarray in C order: itself if it is one, else a copy."""
    array = np.asarray(array, order="C")
    return array if array.flags.aligned else array.copy()


def _target(array):
    """The dense array into which an in-place operation writes: `array`, or a copy of it."""
    if not isinstance(array, np.ndarray):
        raise InvalidArgumentError(
            f"an in-place operation needs a numpy.ndarray, got {type(array).__name__}"
        )
    if not array.flags.writeable:
        raise InvalidArgumentError("an in-place operation needs a writable array; this one is not")
    return _dense(array)


def _returned(native, array, dense):
    """Ends an operation whose result is in `dense`; `array` is where the caller wants it."""
    handles.release(native)
    if array is not dense:
        array[...] = dense
    return array


def _array(memory, shape, dtype):
    if memory is None:
        return np.empty(shape, dtype)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


def _allocated(native, dtypes):
    found = handles.outputs(native, [dtype.itemsize for dtype in dtypes])
    return [_array(memory, shape, dtype) for (memory, shape), dtype in zip(found, dtypes)]


# ---- allreduce ----------------------------------------------------------------------------------


def allreduce_async(
    array,
    name=None,
    op=Average,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Starts :func:`allreduce`."""
    source = _dense(array)
    return _allreduce(
        source,
        np.empty_like(source, order="C", subok=False),
        None,
        name,
        op,
        prescale_factor,
        postscale_factor,
        process_set,
    )


def _allreduce(source, target, wanted, name, op, prescale, postscale, process_set):
    wanted = target if wanted is None else wanted
    submission = partial(
        submit.allreduce,
        name,
        source.ctypes.data,
        target.ctypes.data,
        source.shape,
        _code(source.dtype),
        op,
        prescale,
        postscale,
        process_set,
    )
    return handles.start(submission, (source, target), lambda h: _returned(h, wanted, target))


def allreduce(
    array,
    name=None,
    op=Average,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """``postscale_factor * op over ranks(prescale_factor * array)``, element by element.

    Args:
        array: of equal shape and dtype on all ranks; 0-d and empty arrays are fine.
        name: see above.
        op: Average, Sum, Min, Max or Product.
        prescale_factor, postscale_factor: multiply each rank's values before, the result after.
        process_set: the ranks that take part.

    Returns:
        A new array of the same shape and dtype, the same on all ranks.

    Example::

        total = allring.allreduce(np.arange(4.0), op=allring.Sum)
    """
    return handles.synchronize(
        allreduce_async(array, name, op, prescale_factor, postscale_factor, process_set)
    )


def allreduce_async_(
    array,
    name=None,
    op=Average,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Starts :func:`allreduce_`."""
    target = _target(array)
    return _allreduce(
        target, target, array, name, op, prescale_factor, postscale_factor, process_set
    )


def allreduce_(
    array,
    name=None,
    op=Average,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """:func:`allreduce` in place; returns `array`."""
    return handles.synchronize(
        allreduce_async_(array, name, op, prescale_factor, postscale_factor, process_set)
    )


def grouped_allreduce_async(
    arrays,
    name=None,
    op=Average,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Starts :func:`grouped_allreduce`."""
    sources = [_dense(array) for array in arrays]
    targets = [np.empty_like(source, order="C", subok=False) for source in sources]
    return _grouped_allreduce(
        sources, targets, targets, name, op, prescale_factor, postscale_factor, process_set
    )


def _grouped_allreduce(sources, targets, wanted, name, op, prescale, postscale, process_set):
    members = [
        (source.ctypes.data, target.ctypes.data, source.shape, _code(source.dtype))
        for source, target in zip(sources, targets)
    ]
    submission = partial(
        submit.grouped, _library.KIND_ALLREDUCE, name, members, process_set, op, prescale, postscale
    )

    def finish(native):
        handles.release(native)
        for array, target in zip(wanted, targets):
            if array is not target:
                array[...] = target
        return list(wanted)

    return handles.start(submission, (sources, targets), finish)


def grouped_allreduce(
    arrays,
    name=None,
    op=Average,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """:func:`allreduce` of several arrays as one: all succeed or all fail, on every rank.

    Args:
        arrays: a sequence of at least one; shapes and dtypes may differ within it.

    Returns:
        A list of new arrays.
    """
    return handles.synchronize(
        grouped_allreduce_async(arrays, name, op, prescale_factor, postscale_factor, process_set)
    )


def grouped_allreduce_async_(
    arrays,
    name=None,
    op=Average,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Starts :func:`grouped_allreduce_`."""
    arrays = list(arrays)
    targets = [_target(array) for array in arrays]
    return _grouped_allreduce(
        targets, targets, arrays, name, op, prescale_factor, postscale_factor, process_set
    )


def grouped_allreduce_(
    arrays,
    name=None,
    op=Average,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """:func:`grouped_allreduce` in place; returns a list of `arrays`."""
    return handles.synchronize(
        grouped_allreduce_async_(arrays, name, op, prescale_factor, postscale_factor, process_set)
    )


# ---- allgather ----------------------------------------------------------------------------------


def allgather_async(array, name=None, process_set=global_process_set):
    """Starts :func:`allgather`."""
    source = _dense(array)
    submission = partial(
        submit.allgather, name, source.ctypes.data, source.shape, _code(source.dtype), process_set
    )
    return handles.start(submission, source, lambda h: _allocated(h, [source.dtype])[0])


def allgather(array, name=None, process_set=global_process_set):
    """All ranks' arrays, joined along the first dimension in rank order.

    Args:
        array: at least 1-d. The first dimension may differ between ranks and be 0; the others and
            the dtype may not.

    Returns:
        A new array, the same on all ranks.

    Example::

        ranks = allring.allgather(np.array([allring.rank()]))  # [0, 1, ...]
    """
    return handles.synchronize(allgather_async(array, name, process_set))


def grouped_allgather_async(arrays, name=None, process_set=global_process_set):
    """Starts :func:`grouped_allgather`."""
    sources = [_dense(array) for array in arrays]
    members = [(s.ctypes.data, None, s.shape, _code(s.dtype)) for s in sources]
    submission = partial(submit.grouped, _library.KIND_ALLGATHER, name, members, process_set)
    return handles.start(submission, sources, lambda h: _allocated(h, [s.dtype for s in sources]))


def grouped_allgather(arrays, name=None, process_set=global_process_set):
    """:func:`allgather` of several arrays as one; returns a list of new arrays."""
    return handles.synchronize(grouped_allgather_async(arrays, name, process_set))


# ---- broadcast ----------------------------------------------------------------------------------


def broadcast_async(array, root_rank, name=None, process_set=global_process_set):
    """Starts :func:`broadcast`."""
    source = _dense(array)
    target = np.empty_like(source, order="C", subok=False)
    return _broadcast(source, target, target, root_rank, name, process_set)


def _broadcast(source, target, wanted, root_rank, name, process_set):
    submission = partial(
        submit.broadcast,
        name,
        source.ctypes.data,
        target.ctypes.data,
        source.shape,
        _code(source.dtype),
        root_rank,
        process_set,
    )
    return handles.start(submission, (source, target), lambda h: _returned(h, wanted, target))


def broadcast(array, root_rank, name=None, process_set=global_process_set):
    """The array of one rank.

    Args:
        array: of equal shape and dtype on all ranks; the values matter on `root_rank` only.
        root_rank: the rank in the whole job, also when `process_set` is a part of it.

    Returns:
        A new array, the same on all ranks.
    """
    return handles.synchronize(broadcast_async(array, root_rank, name, process_set))


def broadcast_async_(array, root_rank, name=None, process_set=global_process_set):
    """Starts :func:`broadcast_`."""
    target = _target(array)
    return _broadcast(target, target, array, root_rank, name, process_set)


def broadcast_(array, root_rank, name=None, process_set=global_process_set):
    """:func:`broadcast` in place; returns `array`."""
    return handles.synchronize(broadcast_async_(array, root_rank, name, process_set))


# ---- alltoall -----------------------------------------------------------------------------------


def alltoall_async(array, splits=None, name=None, process_set=global_process_set):
    """Starts :func:`alltoall`; synchronize() returns the pair, with or without `splits`."""
    source = _dense(array)
    submission = partial(
        submit.alltoall,
        name,
        source.ctypes.data,
        source.shape,
        _code(source.dtype),
        _splits(splits),
        process_set,
    )

    def finish(native):
        received = np.array(submit.received_splits(native, process_set), np.int64)
        return _allocated(native, [source.dtype])[0], received

    return handles.start(submission, source, finish)


def _splits(splits):
    if splits is None:
        return None
    splits = np.asarray(splits)
    if splits.ndim != 1 or (splits.size and splits.dtype.kind not in "iu"):
        raise InvalidArgumentError(
            f"splits must be a 1-d sequence of integers, got {splits.ndim}-d of {splits.dtype}"
        )
    return splits.tolist()


def alltoall(array, splits=None, name=None, process_set=global_process_set):
    """Sends consecutive rows to each rank, and receives the rows meant for this one.

    Args:
        array: at least 1-d; dimensions but the first, and the dtype, are equal on all ranks.
        splits: how many rows go to each rank; None for equal parts, for which the first dimension
            must be a multiple of size().

    Returns:
        The received rows, in the order of the ranks that sent them; with `splits` a pair of
        them and a 1-d int64 array that tells how many came from each rank.
    """
    output, received = handles.synchronize(alltoall_async(array, splits, name, process_set))
    return output if splits is None else (output, received)


# ---- reducescatter ------------------------------------------------------------------------------


def reducescatter_async(
    array,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """Starts :func:`reducescatter`."""
    source = _dense(array)
    submission = partial(
        submit.reducescatter,
        name,
        source.ctypes.data,
        source.shape,
        _code(source.dtype),
        op,
        prescale_factor,
        postscale_factor,
        process_set,
    )
    return handles.start(submission, source, lambda h: _allocated(h, [source.dtype])[0])


def reducescatter(
    array,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """Reduces over the ranks and gives each rank its share of the rows.

    Args:
        array: at least 1-d, of equal shape and dtype on all ranks.
        op: Average or Sum.

    Returns:
        A new array: rows // size() rows of the result; the first rows % size() ranks get one more.
    """
    return handles.synchronize(
        reducescatter_async(array, name, op, process_set, prescale_factor, postscale_factor)
    )


def grouped_reducescatter_async(
    arrays,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """Starts :func:`grouped_reducescatter`."""
    sources = [_dense(array) for array in arrays]
    members = [(s.ctypes.data, None, s.shape, _code(s.dtype)) for s in sources]
    submission = partial(
        submit.grouped,
        _library.KIND_REDUCE_SCATTER,
        name,
        members,
        process_set,
        op,
        prescale_factor,
        postscale_factor,
    )
    return handles.start(submission, sources, lambda h: _allocated(h, [s.dtype for s in sources]))


def grouped_reducescatter(
    arrays,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """:func:`reducescatter` of several arrays as one; returns a list of new arrays."""
    return handles.synchronize(
        grouped_reducescatter_async(
            arrays, name, op, process_set, prescale_factor, postscale_factor
        )
    )


# ---- barrier ------------------------------------------------------------------------------------


def barrier(process_set=global_process_set):
    """Returns when all ranks have called it."""
    handles.synchronize(handles.start(partial(submit.barrier, process_set), None, handles.release))
