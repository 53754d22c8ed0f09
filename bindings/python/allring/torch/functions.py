"""Brings parameters, optimizers and objects of all ranks to those of one rank."""

import collections
from collections.abc import Iterable, Mapping

import torch

from ..basics import rank
from ..errors import InvalidArgumentError
from ..objects import allgather_object, broadcast_object
from .ops import broadcast_async_, synchronize

__all__ = [
    "allgather_object",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
]


def broadcast_parameters(params, root_rank):
    """Overwrites tensors with those of `root_rank`, in place.

    Args:
        params: ``model.state_dict()``, ``model.named_parameters()``, or any other mapping or
            iterable of pairs (name, tensor). None instead of a tensor is skipped. Names, shapes
            and dtypes are equal on all ranks.
        root_rank: the rank whose values all get.

    Raises:
        ValueError: `params` is something else, or a value is no tensor.

    Example::

        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    """
    pending = [
        broadcast_async_(tensor, root_rank, name=f"broadcast.{name}")
        for name, tensor in _named_tensors(params)
    ]
    for handle in pending:
        synchronize(handle)


def _named_tensors(params):
    if isinstance(params, Mapping):
        params = params.items()
    elif not isinstance(params, Iterable) or isinstance(params, (str, torch.Tensor)):
        raise InvalidArgumentError(
            "params must be model.state_dict() or model.named_parameters(), got "
            f"{type(params).__name__}"
        )
    named = []
    for pair in params:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidArgumentError(
                f"params must hold pairs (name, tensor), got {type(pair).__name__}; "
                "model.named_parameters() has them"
            )
        name, tensor = pair
        if tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor):
            raise InvalidArgumentError(
                f"params[{name!r}] is no tensor but {type(tensor).__name__}: send it by "
                "broadcast_object()"
            )
        named.append((name, tensor))
    return named


# Stands for a tensor while the structure around it travels.
_TensorPlace = collections.namedtuple("_TensorPlace", ["shape", "dtype"])


def _without_tensors(value, tensors):
    """`value` with _TensorPlace for each tensor, which is appended to `tensors`."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return _TensorPlace(tuple(value.shape), value.dtype)
    if isinstance(value, Mapping):
        return {key: _without_tensors(entry, tensors) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_without_tensors(entry, tensors) for entry in value)
    return value


def _with_tensors(value, tensors):
    """Undoes _without_tensors(): an uninitialized tensor, appended to `tensors`, in each place."""
    if isinstance(value, _TensorPlace):
        tensors.append(torch.empty(value.shape, dtype=value.dtype))
        return tensors[-1]
    if isinstance(value, dict):
        return {key: _with_tensors(entry, tensors) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_with_tensors(entry, tensors) for entry in value)
    return value


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """Overwrites an optimizer's state and hyperparameters with those of `root_rank`.

    No step is taken for it: the structure travels as an object and its tensors by broadcast, so
    it does not matter which ranks have state already.

    Args:
        optimizer: any torch.optim.Optimizer but LBFGS, over equal parameters on all ranks.
        root_rank: the rank whose state all get.
        model: not needed; Horovod's signature has it.

    Raises:
        ValueError: the optimizer is LBFGS, whose state depends on local evaluations.

    Example::

        optimizer.load_state_dict(checkpoint["optimizer"])  # on rank 0 only
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidArgumentError(
            "torch.optim.LBFGS is not supported: its state depends on local evaluations"
        )
    is_root = rank() == root_rank
    tensors = []
    structure = _without_tensors(optimizer.state_dict(), tensors) if is_root else None
    structure = broadcast_object(structure, root_rank, name="broadcast_optimizer_state")
    if not is_root:
        tensors = []
        state_dict = _with_tensors(structure, tensors)
    pending = [
        broadcast_async_(tensor, root_rank, name=f"broadcast_optimizer_state.{index}")
        for index, tensor in enumerate(tensors)
    ]
    for handle in pending:
        synchronize(handle)
    if not is_root:
        optimizer.load_state_dict(state_dict)
