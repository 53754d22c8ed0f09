"""DistributedOptimizer: an optimizer that steps with gradients reduced over the ranks."""

import contextlib
import warnings

import torch

from ..basics import size
from ..errors import InvalidArgumentError, UnsupportedError
from ..process_sets import global_process_set
from ..reduce_ops import Adasum, Average
from .compression import Compression
from .reducer import GradientReducer


class _DistributedOptimizer(torch.optim.Optimizer):
    """What DistributedOptimizer() mixes into the class of the optimizer that it is given."""

    def _distribute(
        self,
        named_parameters,
        compression,
        backward_passes_per_step,
        op,
        gradient_predivide_factor,
        groups,
        sparse_as_dense,
        process_set,
    ):
        self._parameter_names = dict(
            _checked_names(named_parameters, self.param_groups)
            if named_parameters is not None
            else _default_names(self.param_groups)
        )
        self.process_set = process_set
        self._should_synchronize = True
        self._reducer = None
        if size() == 1 or not process_set.included():
            return
        self._reducer = GradientReducer(
            backward_passes_per_step,
            compression,
            sparse_as_dense,
            {
                "op": op,
                "prescale_factor": 1.0 / gradient_predivide_factor,
                "postscale_factor": gradient_predivide_factor,
                "process_set": process_set,
            },
        )
        for index, members in enumerate(_groups(groups, self._trainable())):
            self._reducer.add(f"allreduce.group.{index}", members)
        self._attach()

    def _trainable(self):
        return [p for group in self.param_groups for p in group["params"] if p.requires_grad]

    def _attach(self):
        """Hooks onto the parameters that have become trainable or were added."""
        new = [p for p in self._trainable() if p not in self._reducer]
        if any(p not in self._parameter_names for p in new):
            for p, name in _default_names(self.param_groups):
                self._parameter_names.setdefault(p, name)
        for p in new:
            self._reducer.add(f"allreduce.{self._parameter_names[p]}", [p])

    @staticmethod
    def find_duplicates(lst):
        """The values that `lst` has more than once, as a set."""
        seen = set()
        return {value for value in lst if value in seen or seen.add(value)}

    def set_backward_passes_per_step(self, passes):
        """From the next step on, reduces after so many backward passes."""
        _check_passes(passes)
        if self._reducer is not None:
            self._reducer.set_passes(passes)

    def synchronize(self):
        """Waits until all gradients are reduced, for code that changes them before step().

        Example::

            loss.backward()
            optimizer.synchronize()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with optimizer.skip_synchronize():
                optimizer.step()
        """
        if self._reducer is not None:
            self._attach()
            self._reducer.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Within it step() takes the gradients as they are: synchronize() was called before."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def _synchronize_before_step(self):
        reducer = self._reducer
        if reducer is None:
            return
        if not self._should_synchronize:
            if reducer.pending():
                raise AssertionError(
                    "step() within skip_synchronize() while gradients are being reduced: call "
                    "synchronize() before"
                )
        elif reducer.synchronized:
            warnings.warn(
                "optimizer.step() after optimizer.synchronize() without "
                "optimizer.skip_synchronize(): the gradients are taken as they are",
                stacklevel=3,
            )
        else:
            self.synchronize()
        reducer.synchronized = False

    def step(self, closure=None):
        """Waits until all gradients are reduced, then steps.

        Args:
            closure: evaluates the model and calls backward(); its gradients are reduced before the
                step uses them.
        """
        if closure is None:
            self._synchronize_before_step()
            return super().step()
        if self._reducer is not None and self._reducer.pending():
            self.synchronize()

        def reducing_closure():
            loss = closure()
            self._synchronize_before_step()
            return loss

        return super().step(reducing_closure)

    # torch wraps the step() of a class that is not marked, which would run its hooks twice.
    step.hooked = True

    def zero_grad(self, *args, **kwargs):
        """As torch's; AssertionError between backward() and step()."""
        if self._reducer is not None and self._reducer.pending():
            raise AssertionError(
                "optimizer.zero_grad() after backward() and before step() or synchronize(): the "
                "gradients are being reduced"
            )
        return super().zero_grad(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        """As torch's; gradients under way are given up."""
        if self._reducer is not None:
            self._reducer.abandon()
        return super().load_state_dict(*args, **kwargs)


def _default_names(param_groups):
    """Pairs (parameter, name) by position."""
    for i, group in enumerate(param_groups):
        for j, parameter in enumerate(group["params"]):
            yield parameter, f"noname.{i}.{j}"


def _checked_names(named_parameters, param_groups):
    """Pairs (parameter, name) from pairs (name, parameter)."""
    named_parameters = list(named_parameters)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in named_parameters):
        raise InvalidArgumentError(
            "named_parameters must be a sequence of pairs (name, parameter), as "
            "model.named_parameters() makes them"
        )
    duplicates = _DistributedOptimizer.find_duplicates([name for name, _ in named_parameters])
    if duplicates:
        raise InvalidArgumentError(
            f"names in named_parameters must be unique; duplicates: {', '.join(sorted(duplicates))}"
        )
    named = {parameter for _, parameter in named_parameters}
    missing = [
        f"{i}.{j} of shape {tuple(parameter.shape)}"
        for i, group in enumerate(param_groups)
        for j, parameter in enumerate(group["params"])
        if parameter not in named
    ]
    if missing:
        raise InvalidArgumentError(
            "named_parameters lacks parameters of the optimizer, by group and place: "
            f"{', '.join(missing)}"
        )
    # Of a shared parameter with two names the first counts.
    return [(parameter, name) for name, parameter in reversed(named_parameters)]


def _check_passes(passes):
    if passes < 1:
        raise InvalidArgumentError(f"backward_passes_per_step must be at least 1, got {passes}")


def _check_groups(groups):
    if groups is None or (isinstance(groups, int) and groups >= 0):
        return
    if not isinstance(groups, list) or not all(
        isinstance(group, list) and all(isinstance(p, torch.Tensor) for p in group)
        for group in groups
    ):
        raise InvalidArgumentError(
            f"groups must be a number from 0 or a list of lists of parameters, got {groups!r}"
        )
    if len({p for group in groups for p in group}) != sum(len(group) for group in groups):
        raise InvalidArgumentError("a parameter may be in one group only, and once")


def _groups(groups, parameters):
    """The groups, as lists of trainable parameters; what is in none is reduced by itself."""
    if not groups:
        return []
    if isinstance(groups, int):
        count = min(groups, len(parameters))
        ends = [len(parameters) * i // count for i in range(count + 1)] if count else [0]
        return [parameters[start:end] for start, end in zip(ends, ends[1:])]
    trainable = set(parameters)
    lists = [[p for p in group if p in trainable] for group in groups]
    return [group for group in lists if group]


def DistributedOptimizer(
    optimizer,
    named_parameters=None,
    compression=Compression.none,
    backward_passes_per_step=1,
    op=Average,
    gradient_predivide_factor=1.0,
    num_groups=0,
    groups=None,
    sparse_as_dense=False,
    process_set=global_process_set,
):
    """An optimizer that steps with gradients reduced over the ranks, in place of `optimizer`.

    Each gradient's reduction starts in the backward pass as soon as it is computed; step() waits
    for all. A parameter without a gradient on some rank counts as zeros there. The result is an
    instance of a subclass of the optimizer's class and shares its state and parameter groups, so
    learning rate schedulers work with it. With one rank nothing is changed but the class.

    Args:
        optimizer: any torch.optim.Optimizer but LBFGS.
        named_parameters: pairs (name, parameter), for names in messages; all parameters of the
            optimizer, or None for names by position.
        compression: of :class:`Compression`, how gradients travel.
        backward_passes_per_step: reduce after so many passes, whose gradients add up (they are not
            divided by the number of passes).
        op: Average, Sum, Min, Max or Product.
        gradient_predivide_factor: with Average, divide by so much before the sum and by the rest
            after it.
        num_groups: deprecated, use groups.
        groups: reduce parameters together: a number of groups, or a list of lists of parameters.
        sparse_as_dense: make sparse gradients dense; without it they are an error.
        process_set: the ranks that take part.

    Raises:
        ValueError: the arguments contradict each other, or the optimizer is LBFGS.
        UnsupportedError: op=Adasum.

    Example::

        optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    """
    if isinstance(optimizer, _DistributedOptimizer):
        raise InvalidArgumentError("this optimizer is distributed already")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidArgumentError(
            "torch.optim.LBFGS is not supported: it decides by each rank's own loss how often to "
            "evaluate, so ranks would part ways"
        )
    if op == Adasum:
        raise UnsupportedError(
            "op=Adasum is not available in this version: use Average with a learning rate that is "
            "scaled by size()"
        )
    if gradient_predivide_factor != 1.0 and op != Average:
        raise InvalidArgumentError("gradient_predivide_factor needs op=Average")
    if num_groups:
        warnings.warn("num_groups= is deprecated: use groups=", DeprecationWarning, stacklevel=2)
        groups = num_groups if groups is None else groups
    _check_groups(groups)
    _check_passes(backward_passes_per_step)

    base = type(optimizer)
    distributed = object.__new__(type(base.__name__, (_DistributedOptimizer, base), {}))
    # A scheduler that was made before has put a step() of its own into the instance, by which it
    # notices when schedule and optimizer step in the wrong order. It will not see ours.
    distributed.__dict__.update(
        (key, value) for key, value in optimizer.__dict__.items() if key != "step"
    )
    optimizer._opt_called = True
    distributed._distribute(
        named_parameters,
        compression,
        backward_passes_per_step,
        op,
        gradient_predivide_factor,
        groups,
        sparse_as_dense,
        process_set,
    )
    return distributed
