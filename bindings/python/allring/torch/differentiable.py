"""The blocking collectives that return new tensors; they are differentiable.

The gradient of each is Horovod's: of an allreduce the allreduce of the gradients with the same op
and factors; of an allgather and of a broadcast this rank's part of the averaged gradients; of an
alltoall the alltoall back; of a reducescatter the allgather. See ops.py for what all share.
"""

import torch

from ..handles import synchronize
from ..process_sets import global_process_set
from ..reduce_ops import Average, Sum
from .compression import Compression
from .ops import (
    allgather_async,
    allreduce_async,
    alltoall_async,
    broadcast_async,
    grouped_allgather_async,
    grouped_allreduce_async,
    grouped_reducescatter_async,
    reducescatter_async,
    resolved_op,
)

# ---- allreduce ----------------------------------------------------------------------------------


def _gradient_name(name):
    return None if name is None else f"{name}.gradient"


class HorovodAllreduce(torch.autograd.Function):
    """allreduce(); its gradient is the allreduce of the gradients, with the same op and factors."""

    @staticmethod
    def forward(ctx, tensor, average, name, op, prescale_factor, postscale_factor, process_set):
        ctx.arguments = (
            average,
            _gradient_name(name),
            op,
            prescale_factor,
            postscale_factor,
            process_set,
        )
        return synchronize(
            allreduce_async(
                tensor, average, name, op, prescale_factor, postscale_factor, process_set
            )
        )

    @staticmethod
    def backward(ctx, grad_output):
        return (allreduce(grad_output, *_without_compression(ctx.arguments)), *[None] * 6)


def _without_compression(arguments):
    """Arguments of allreduce_async() as those of allreduce(), which has one more."""
    average, name, *others = arguments
    return (average, name, Compression.none, *others)


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """``postscale_factor * op over ranks(prescale_factor * tensor)``, element by element.

    Args:
        tensor: of equal shape and dtype on all ranks; 0-d and empty tensors are fine.
        average: deprecated; True for op=Average, False for op=Sum.
        name: see the module.
        compression: of :class:`Compression`, how the tensor travels.
        op: Average (default), Sum, Min, Max or Product.
        prescale_factor, postscale_factor: multiply each rank's values before, the result after.
        process_set: the ranks that take part.

    Returns:
        A new tensor of the same shape, dtype and device, the same on all ranks.

    Example::

        mean_loss = hvd.allreduce(loss.detach(), name="loss")
    """
    op = resolved_op(average, op)
    compressed, ctx = compression.compress(tensor)
    reduced = HorovodAllreduce.apply(
        compressed, None, name, op, prescale_factor, postscale_factor, process_set
    )
    return compression.decompress(reduced, ctx)


class HorovodGroupedAllreduce(torch.autograd.Function):
    """grouped_allreduce(); its gradient is that of the gradients."""

    @staticmethod
    def forward(ctx, average, name, op, prescale_factor, postscale_factor, process_set, *tensors):
        ctx.arguments = (
            average,
            _gradient_name(name),
            op,
            prescale_factor,
            postscale_factor,
            process_set,
        )
        return tuple(
            synchronize(
                grouped_allreduce_async(
                    tensors, average, name, op, prescale_factor, postscale_factor, process_set
                )
            )
        )

    @staticmethod
    def backward(ctx, *grad_output):
        reduced = grouped_allreduce(grad_output, *_without_compression(ctx.arguments))
        return (*[None] * 6, *reduced)


def grouped_allreduce(
    tensors,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=global_process_set,
):
    """:func:`allreduce` of several tensors as one: all succeed or all fail, on every rank.

    Args:
        tensors: a sequence of at least one; shapes and dtypes may differ within it.

    Returns:
        A list of new tensors.
    """
    op = resolved_op(average, op)
    compressed = [compression.compress(tensor) for tensor in tensors]
    reduced = HorovodGroupedAllreduce.apply(
        None,
        name,
        op,
        prescale_factor,
        postscale_factor,
        process_set,
        *[tensor for tensor, _ in compressed],
    )
    return [compression.decompress(t, ctx) for t, (_, ctx) in zip(reduced, compressed)]


# ---- allgather ----------------------------------------------------------------------------------


def _own_rows(grads, rows, name, process_set):
    """Of each gathered gradient the rows that this rank contributed.

    Args:
        grads: gradients of gathered tensors.
        rows: for each of them the rows of this rank.
    """
    counts = synchronize(
        allgather_async(torch.tensor([rows]), name and f"{name}.rows", process_set)
    )
    rank = process_set.rank()
    starts = counts[:rank].sum(0).tolist()
    return [grad.narrow(0, start, count) for grad, start, count in zip(grads, starts, rows)]


class HorovodAllgather(torch.autograd.Function):
    """allgather(); its gradient is this rank's rows of the averaged gradients."""

    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows = tensor.shape[0] if tensor.dim() else 0
        ctx.name = _gradient_name(name)
        ctx.process_set = process_set
        return synchronize(allgather_async(tensor, name, process_set))

    @staticmethod
    def backward(ctx, grad_output):
        averaged = allreduce(grad_output, name=ctx.name, op=Average, process_set=ctx.process_set)
        return _own_rows([averaged], [ctx.rows], ctx.name, ctx.process_set)[0], None, None


def allgather(tensor, name=None, process_set=global_process_set):
    """All ranks' tensors, joined along the first dimension in rank order.

    Args:
        tensor: at least 1-d. The first dimension may differ between ranks and be 0; the others and
            the dtype may not.

    Returns:
        A new tensor, the same on all ranks.

    Example::

        predictions = hvd.allgather(predictions)
    """
    return HorovodAllgather.apply(tensor, name, process_set)


class HorovodGroupedAllgather(torch.autograd.Function):
    """grouped_allgather(); its gradients are this rank's rows of the averaged gradients."""

    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.rows = [tensor.shape[0] if tensor.dim() else 0 for tensor in tensors]
        ctx.name = _gradient_name(name)
        ctx.process_set = process_set
        return tuple(synchronize(grouped_allgather_async(tensors, name, process_set)))

    @staticmethod
    def backward(ctx, *grad_output):
        averaged = grouped_allreduce(
            grad_output, name=ctx.name, op=Average, process_set=ctx.process_set
        )
        return (None, None, *_own_rows(averaged, ctx.rows, ctx.name, ctx.process_set))


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """:func:`allgather` of several tensors as one; returns a list of new tensors."""
    return list(HorovodGroupedAllgather.apply(name, process_set, *tensors))


# ---- broadcast ----------------------------------------------------------------------------------


class HorovodBroadcast(torch.autograd.Function):
    """broadcast(); its gradient is the averaged gradient on the root and zero elsewhere."""

    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank = root_rank
        ctx.name = _gradient_name(name)
        ctx.process_set = process_set
        return synchronize(broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx, grad_output):
        averaged = allreduce(grad_output, name=ctx.name, op=Average, process_set=ctx.process_set)
        is_root = ctx.process_set.ranks[ctx.process_set.rank()] == ctx.root_rank
        return averaged if is_root else torch.zeros_like(averaged), None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """The tensor of one rank.

    Args:
        tensor: of equal shape and dtype on all ranks; the values matter on `root_rank` only.
        root_rank: the rank in the whole job, also when `process_set` is a part of it.

    Returns:
        A new tensor, the same on all ranks.
    """
    return HorovodBroadcast.apply(tensor, root_rank, name, process_set)


# ---- alltoall -----------------------------------------------------------------------------------


class HorovodAlltoall(torch.autograd.Function):
    """alltoall(); its gradient sends each row's gradient back to where the row came from."""

    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        output, received = synchronize(alltoall_async(tensor, splits, name, process_set))
        ctx.received = received
        ctx.name = _gradient_name(name)
        ctx.process_set = process_set
        ctx.mark_non_differentiable(received)
        return output, received

    @staticmethod
    def backward(ctx, grad_output, *dead_gradients):
        returned, _ = alltoall(grad_output, ctx.received, ctx.name, ctx.process_set)
        return returned, None, None, None


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends consecutive rows to each rank, and receives the rows meant for this one.

    Args:
        tensor: at least 1-d; dimensions but the first, and the dtype, are equal on all ranks.
        splits: 1-d tensor of int32 or int64, or a sequence: how many rows go to each rank; None
            for equal parts, for which the first dimension must be a multiple of size().

    Returns:
        The received rows, in the order of the ranks that sent them; with `splits` a pair of
        them and a 1-d int32 tensor that tells how many came from each rank.
    """
    output, received = HorovodAlltoall.apply(tensor, splits, name, process_set)
    return output if splits is None else (output, received)


# ---- reducescatter ------------------------------------------------------------------------------


def _scatter_gradient_factor(op, process_set, prescale_factor, postscale_factor):
    return (process_set.size() if op == Sum else 1) * prescale_factor * postscale_factor


class HorovodReducescatter(torch.autograd.Function):
    """reducescatter(); its gradient is the allgather of the gradients, scaled as Horovod does."""

    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale_factor, postscale_factor):
        ctx.factor = _scatter_gradient_factor(op, process_set, prescale_factor, postscale_factor)
        ctx.name = _gradient_name(name)
        ctx.process_set = process_set
        return synchronize(
            reducescatter_async(tensor, name, op, process_set, prescale_factor, postscale_factor)
        )

    @staticmethod
    def backward(ctx, grad_output):
        gathered = allgather(grad_output * ctx.factor, ctx.name, ctx.process_set)
        return (gathered, *[None] * 5)


def reducescatter(
    tensor,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """Reduces over the ranks and gives each rank its share of the rows.

    Args:
        tensor: at least 1-d, of equal shape and dtype on all ranks.
        compression: of :class:`Compression`, how the tensor travels.
        op: Average or Sum.

    Returns:
        A new tensor: rows // size() rows of the result; the first rows % size() ranks get one more.
    """
    compressed, ctx = compression.compress(tensor)
    reduced = HorovodReducescatter.apply(
        compressed, name, op, process_set, prescale_factor, postscale_factor
    )
    return compression.decompress(reduced, ctx)


class HorovodGroupedReducescatter(torch.autograd.Function):
    """grouped_reducescatter(); its gradients are as reducescatter()'s."""

    @staticmethod
    def forward(ctx, name, op, process_set, prescale_factor, postscale_factor, *tensors):
        ctx.factor = _scatter_gradient_factor(op, process_set, prescale_factor, postscale_factor)
        ctx.name = _gradient_name(name)
        ctx.process_set = process_set
        return tuple(
            synchronize(
                grouped_reducescatter_async(
                    tensors, name, op, process_set, prescale_factor, postscale_factor
                )
            )
        )

    @staticmethod
    def backward(ctx, *grad_output):
        scaled = [grad * ctx.factor for grad in grad_output]
        return (*[None] * 5, *grouped_allgather(scaled, ctx.name, ctx.process_set))


def grouped_reducescatter(
    tensors,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=global_process_set,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """:func:`reducescatter` of several tensors as one; returns a list of new tensors."""
    compressed = [compression.compress(tensor) for tensor in tensors]
    reduced = HorovodGroupedReducescatter.apply(
        name,
        op,
        process_set,
        prescale_factor,
        postscale_factor,
        *[tensor for tensor, _ in compressed],
    )
    return [compression.decompress(t, ctx) for t, (_, ctx) in zip(reduced, compressed)]
