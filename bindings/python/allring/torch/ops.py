"""Collectives on torch tensors; nothing here is compiled, so any version of torch will do.

What all functions share:

- Every rank calls them, with equal arguments where nothing else is said.
- dtypes: bool, uint8, int8, uint16, int16, int32, int64, float16, bfloat16, float32, float64;
  others are a ValueError, and so are sparse tensors.
- A name tells which calls of the ranks belong together, so ranks may start operations in different
  orders. It must be unique among what is in flight. Unnamed calls are numbered, so ranks must
  make those in the same order.
- Tensors that are not contiguous, or not in host memory, are copied into contiguous host memory and
  the result is copied back: right on every device, and slower.
- ``*_async`` forms return a handle at once, for :func:`synchronize`. Until then the input must not
  be changed. Forms that end in ``_`` put the result into the tensor that they are given; one that
  had to be copied gets it in synchronize().
- The blocking forms that return new tensors are differentiable, see differentiable.py.
- Calls that differ between ranks raise MismatchError on all of them; a lost rank raises
  PeerLostError, a rank that does not come TimedOutError.
"""

import warnings
from functools import partial

import torch

from .. import _library, handles, submit
from ..errors import InvalidArgumentError
from ..handles import synchronize
from ..process_sets import global_process_set
from ..reduce_ops import Average, Sum

# Older torch lacks uint16.
_CODES = {
    getattr(torch, name): code for name, code in _library.DTYPES.items() if hasattr(torch, name)
}


def _checked(tensor):
    """The code of the tensor's dtype; ValueError for what no collective can take."""
    if not isinstance(tensor, torch.Tensor):
        raise InvalidArgumentError(f"expected a torch.Tensor, got {type(tensor).__name__}")
    code = _CODES.get(tensor.dtype)
    if code is None:
        raise InvalidArgumentError(
            f"Tensor type {tensor.dtype} is not supported: convert to one of "
            f"{', '.join(str(dtype) for dtype in _CODES)}"
        )
    if tensor.layout is not torch.strided:
        raise InvalidArgumentError(
            f"tensors of layout {tensor.layout} are not supported: convert with to_dense()"
        )
    return code


def _staged(tensor):
    """The tensor in contiguous host memory: itself if it is there, else a copy."""
    if tensor.is_cpu and tensor.is_contiguous() and not tensor.is_neg():
        return tensor
    if tensor.is_meta:
        raise InvalidArgumentError("a tensor on the device 'meta' has no values to send")
    return tensor.detach().resolve_neg().cpu().contiguous()


def _target(tensor):
    """Like _staged(), for a tensor into which the result is to be written."""
    _checked(tensor)
    if not tensor.is_contiguous() and any(
        stride == 0 and extent > 1 for stride, extent in zip(tensor.stride(), tensor.shape)
    ):
        raise InvalidArgumentError(
            "an in-place operation cannot write into an expanded tensor, of which several elements "
            "share one place in memory: use a clone() of it"
        )
    return _staged(tensor)


def _empty(source):
    return torch.empty(source.shape, dtype=source.dtype)


def _place(wanted, target):
    """Brings a result to where the caller wants it: a tensor, or a device for a new tensor."""
    if isinstance(wanted, torch.device):
        return target if wanted.type == "cpu" else target.to(wanted)
    if wanted is not target:
        with torch.no_grad():
            wanted.copy_(target)
    return wanted


def _allocated(native, sources, tensors):
    """Results that the library allocated, on the devices of the inputs."""
    found = handles.outputs(native, [source.element_size() for source in sources])
    results = []
    for (memory, shape), tensor in zip(found, tensors):
        if memory is None:
            result = torch.empty(shape, dtype=tensor.dtype)
        else:
            result = torch.frombuffer(memory, dtype=tensor.dtype).reshape(shape)
        results.append(_place(tensor.device, result))
    return results


def resolved_op(average, op):
    """The op, from Horovod's old argument and its new one."""
    if average is not None:
        if op is not None:
            raise InvalidArgumentError("give either op or average, which is deprecated, not both")
        warnings.warn(
            "average= is deprecated: use op=Average or op=Sum", DeprecationWarning, stacklevel=3
        )
        return Average if average else Sum
    return Average if op is None else op


# ---- allreduce ----------------------------------------------------------------------------------


def _start_allreduce(source, target, wanted, name, op, prescale, postscale, process_set):
    submission = partial(
        submit.allreduce,
        name,
        source.data_ptr(),
        target.data_ptr(),
        source.shape,
        _CODES[source.dtype],
        op,
        prescale,
        postscale,
        process_set,
    )

    def finish(native):
        handles.release(native)
        return _place(wanted, target)

    return handles.start(submission, (source, target), finish)


def allreduce_async(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Starts :func:`allreduce`, without compression and without a gradient."""
    op = resolved_op(average, op)
    _checked(tensor)
    source = _staged(tensor)
    return _start_allreduce(
        source,
        _empty(source),
        tensor.device,
        name,
        op,
        prescale_factor,
        postscale_factor,
        process_set,
    )


def allreduce_async_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Starts :func:`allreduce_`."""
    op = resolved_op(average, op)
    target = _target(tensor)
    return _start_allreduce(
        target, target, tensor, name, op, prescale_factor, postscale_factor, process_set
    )


def allreduce_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """:func:`allreduce` in place, without a gradient; returns `tensor`."""
    op = resolved_op(average, op)
    return synchronize(
        allreduce_async_(tensor, None, name, op, prescale_factor, postscale_factor, process_set)
    )


def _start_grouped_allreduce(sources, targets, wanted, name, op, prescale, postscale, process_set):
    members = [
        (source.data_ptr(), target.data_ptr(), source.shape, _CODES[source.dtype])
        for source, target in zip(sources, targets)
    ]
    submission = partial(
        submit.grouped, _library.KIND_ALLREDUCE, name, members, process_set, op, prescale, postscale
    )

    def finish(native):
        handles.release(native)
        return [_place(where, target) for where, target in zip(wanted, targets)]

    return handles.start(submission, (sources, targets), finish)


def _staged_all(tensors):
    """(tensors, in contiguous host memory) as lists."""
    tensors = list(tensors)
    for tensor in tensors:
        _checked(tensor)
    return tensors, [_staged(tensor) for tensor in tensors]


def grouped_allreduce_async(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Starts :func:`grouped_allreduce`, without compression and without a gradient."""
    op = resolved_op(average, op)
    tensors, sources = _staged_all(tensors)
    return _start_grouped_allreduce(
        sources,
        [_empty(source) for source in sources],
        [tensor.device for tensor in tensors],
        name,
        op,
        prescale_factor,
        postscale_factor,
        process_set,
    )


def grouped_allreduce_async_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """Starts :func:`grouped_allreduce_`."""
    op = resolved_op(average, op)
    tensors = list(tensors)
    targets = [_target(tensor) for tensor in tensors]
    return _start_grouped_allreduce(
        targets, targets, tensors, name, op, prescale_factor, postscale_factor, process_set
    )


def grouped_allreduce_(
    tensors,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """:func:`grouped_allreduce` in place, without a gradient; returns a list of `tensors`."""
    op = resolved_op(average, op)
    return synchronize(
        grouped_allreduce_async_(
            tensors, None, name, op, prescale_factor, postscale_factor, process_set
        )
    )


# ---- allgather ----------------------------------------------------------------------------------


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Starts :func:`allgather`, without a gradient."""
    code = _checked(tensor)
    source = _staged(tensor)
    submission = partial(submit.allgather, name, source.data_ptr(), source.shape, code, process_set)
    return handles.start(submission, source, lambda h: _allocated(h, [source], [tensor])[0])


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """Starts :func:`grouped_allgather`, without a gradient."""
    tensors, sources = _staged_all(tensors)
    members = [(s.data_ptr(), None, s.shape, _CODES[s.dtype]) for s in sources]
    submission = partial(submit.grouped, _library.KIND_ALLGATHER, name, members, process_set)
    return handles.start(submission, sources, lambda h: _allocated(h, sources, tensors))


# ---- broadcast ----------------------------------------------------------------------------------


def _start_broadcast(source, target, wanted, root_rank, name, process_set):
    submission = partial(
        submit.broadcast,
        name,
        source.data_ptr(),
        target.data_ptr(),
        source.shape,
        _CODES[source.dtype],
        root_rank,
        process_set,
    )

    def finish(native):
        handles.release(native)
        return _place(wanted, target)

    return handles.start(submission, (source, target), finish)


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts :func:`broadcast`, without a gradient."""
    _checked(tensor)
    source = _staged(tensor)
    return _start_broadcast(source, _empty(source), tensor.device, root_rank, name, process_set)


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts :func:`broadcast_`."""
    target = _target(tensor)
    return _start_broadcast(target, target, tensor, root_rank, name, process_set)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """:func:`broadcast` in place, without a gradient; returns `tensor`."""
    return synchronize(broadcast_async_(tensor, root_rank, name, process_set))


# ---- alltoall -----------------------------------------------------------------------------------


def _splits(splits):
    if splits is None:
        return None
    if isinstance(splits, torch.Tensor):
        if splits.dtype not in (torch.int32, torch.int64):
            raise InvalidArgumentError(f"splits must be of int32 or int64, got {splits.dtype}")
        if splits.dim() != 1:
            raise InvalidArgumentError(f"splits must be 1-d, got {splits.dim()}-d")
        return splits.tolist()
    return [int(rows) for rows in splits]


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """Starts :func:`alltoall`, without a gradient; synchronize() returns the pair, with or without
    `splits`."""
    code = _checked(tensor)
    source = _staged(tensor)
    submission = partial(
        submit.alltoall, name, source.data_ptr(), source.shape, code, _splits(splits), process_set
    )

    def finish(native):
        received = submit.received_splits(native, process_set)
        fits = max(received) < 2**31
        received = torch.tensor(received, dtype=torch.int32 if fits else torch.int64)
        return _allocated(native, [source], [tensor])[0], received

    return handles.start(submission, source, finish)


# ---- reducescatter ------------------------------------------------------------------------------


def reducescatter_async(
    tensor,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """Starts :func:`reducescatter`, without compression and without a gradient."""
    code = _checked(tensor)
    source = _staged(tensor)
    submission = partial(
        submit.reducescatter,
        name,
        source.data_ptr(),
        source.shape,
        code,
        op,
        prescale_factor,
        postscale_factor,
        process_set,
    )
    return handles.start(submission, source, lambda h: _allocated(h, [source], [tensor])[0])


def grouped_reducescatter_async(
    tensors,
    name=None,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """Starts :func:`grouped_reducescatter`, without compression and without a gradient."""
    tensors, sources = _staged_all(tensors)
    members = [(s.data_ptr(), None, s.shape, _CODES[s.dtype]) for s in sources]
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
    return handles.start(submission, sources, lambda h: _allocated(h, sources, tensors))


# ---- barrier ------------------------------------------------------------------------------------


def barrier(process_set=global_process_set):
    """Returns when all ranks have called it."""
    synchronize(handles.start(partial(submit.barrier, process_set), None, handles.release))
