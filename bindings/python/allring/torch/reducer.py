"""Reduces the gradients of a set of parameters while the backward pass still runs.

A hook on each parameter sees its gradient accumulated and starts its reduction at once, so that
gradients of the last layers travel while those of the first are still computed. synchronize() waits
for what is left.
"""

import collections
import contextlib
import threading
import weakref

import torch

from .. import handles
from ..errors import InvalidArgumentError, UnsupportedError
from .ops import allreduce_async_, grouped_allreduce_async_, synchronize


class _Names:
    """Names of reductions, unique among the optimizers of this process.

    The n-th use of a name gets the suffix ".n", so ranks agree that make their optimizers in the
    same order.
    """

    def __init__(self):
        self._epoch = None
        self._uses = collections.Counter()

    def claim(self, name):
        if self._epoch != handles.epoch():
            # Those who join a job that meets anew count from the start, so all do.
            self._epoch = handles.epoch()
            self._uses.clear()
        self._uses[name] += 1
        return name if self._uses[name] == 1 else f"{name}.{self._uses[name]}"


_names = _Names()


class _Bucket:
    """Parameters whose gradients are reduced by one operation, when all of them are there."""

    def __init__(self, name, parameters):
        self.name = _names.claim(name)
        self.parameters = parameters
        self.waiting_for = set(parameters)


class _Reduction:
    """A bucket's reduction under way."""

    def __init__(self, parameters, gradients, contexts, handle):
        self.parameters = parameters
        self.gradients = gradients
        self.contexts = contexts
        self.handle = handle


class GradientReducer:
    """Owns the hooks on the parameters and the reductions in flight.

    Hooks may run on several threads; all else belongs to the thread that trains.

    Args:
        passes: backward passes whose gradients add up before they are reduced.
        arguments: op, factors and process set for allreduce_async_().
    """

    def __init__(self, passes, compression, sparse_as_dense, arguments):
        self.passes = passes
        self._compression = compression
        self._sparse_as_dense = sparse_as_dense
        self._arguments = arguments
        self._buckets = []
        self._bucket_of = {}  # for each parameter with a hook
        self._passes_left = {}
        self._in_flight = []
        self._lock = threading.Lock()
        self._accumulated = False  # some gradient has come since synchronize()
        self.synchronized = False  # and none has, since it was called

        # The parameters own the hooks; those must not own the reducer, which may be dropped before.
        own = weakref.ref(self)

        def hook(parameter):
            reducer = own()
            if reducer is not None:
                reducer._on_gradient(parameter)

        # What runs concurrently with the backward pass cannot be part of a compiled graph.
        self._hook = torch.compiler.disable(hook)
        self._removable = []
        weakref.finalize(self, _remove_all, self._removable).atexit = False

    def add(self, name, parameters):
        """Reduces the gradients of `parameters` together, under `name`."""
        bucket = _Bucket(name, parameters)
        self._buckets.append(bucket)
        for parameter in parameters:
            self._bucket_of[parameter] = bucket
            self._passes_left[parameter] = self.passes
            self._removable.append(parameter.register_post_accumulate_grad_hook(self._hook))

    def __contains__(self, parameter):
        return parameter in self._bucket_of

    def pending(self):
        """Whether gradients have come that synchronize() has not dealt with."""
        return self._accumulated

    def set_passes(self, passes):
        self.passes = passes
        for parameter in self._passes_left:
            self._passes_left[parameter] = passes

    def _on_gradient(self, parameter):
        if self._passes_left[parameter] <= 0:
            raise AssertionError(
                "a gradient was computed more than backward_passes_per_step times before "
                f"step() or synchronize() (here for {self._bucket_of[parameter].name}): call those "
                "after each backward pass, or raise backward_passes_per_step to accumulate"
            )
        self._accumulated = True
        self.synchronized = False
        self._passes_left[parameter] -= 1
        if self._passes_left[parameter] == 0:
            self._ready(parameter)

    def _ready(self, parameter):
        bucket = self._bucket_of[parameter]
        with self._lock:
            bucket.waiting_for.discard(parameter)
            complete = not bucket.waiting_for
        if complete:
            self._start(bucket)

    def _start(self, bucket):
        try:
            self._in_flight.append(self._started(bucket))
        except Exception:
            bucket.waiting_for.update(bucket.parameters)  # not reduced: synchronize() tries again
            raise

    def _started(self, bucket):
        gradients = [self._gradient(parameter, bucket.name) for parameter in bucket.parameters]
        compressed = [self._compression.compress(gradient) for gradient in gradients]
        wire = [tensor for tensor, _ in compressed]
        if len(wire) == 1:
            handle = allreduce_async_(wire[0], name=bucket.name, **self._arguments)
        else:
            handle = grouped_allreduce_async_(wire, name=bucket.name, **self._arguments)
        contexts = [context for _, context in compressed]
        return _Reduction(bucket.parameters, gradients, contexts, handle)

    def _gradient(self, parameter, name):
        """The parameter's gradient, dense; zeros where this rank has none, as others may."""
        if not parameter.requires_grad:
            return torch.zeros_like(parameter)  # frozen since, and in a group with others
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        gradient = parameter.grad
        if gradient.requires_grad:
            raise InvalidArgumentError(
                f"{name}: a gradient that has a graph of its own (create_graph=True) cannot be "
                "reduced in the backward pass; use torch.autograd.grad() for the inner one"
            )
        if gradient.layout is torch.strided:
            return gradient
        if not self._sparse_as_dense:
            raise UnsupportedError(
                f"{name}: the gradient is sparse, which this version cannot reduce: give "
                "DistributedOptimizer sparse_as_dense=True, or make the layer with sparse=False"
            )
        parameter.grad = gradient.to_dense()
        return parameter.grad

    @torch.no_grad()
    def synchronize(self):
        """Reduces what has not been, waits for everything, and leaves the results in ``.grad``.

        Raises the first failure, after all have ended, so that the next step can start afresh.
        """
        try:
            failure = self._start_missing()
            for reduction in self._in_flight:
                try:
                    self._finish(reduction)
                except Exception as error:
                    failure = failure or error
        finally:
            self._reset()
        if failure is not None:
            raise failure
        self.synchronized = True

    def _start_missing(self):
        """Starts what this rank has no gradients for, or not all; returns the first failure."""
        failure = None
        for bucket in self._buckets:
            if bucket.waiting_for and any(p.requires_grad for p in bucket.parameters):
                bucket.waiting_for.clear()
                try:
                    self._start(bucket)
                except Exception as error:
                    failure = failure or error
        return failure

    def abandon(self):
        """Waits for what is in flight, whatever comes of it, and forgets it."""
        try:
            for reduction in self._in_flight:
                with contextlib.suppress(Exception):
                    synchronize(reduction.handle)
        finally:
            self._reset()

    def _finish(self, reduction):
        outputs = synchronize(reduction.handle)
        if len(reduction.parameters) == 1:
            outputs = [outputs]
        for parameter, gradient, output, context in zip(
            reduction.parameters, reduction.gradients, outputs, reduction.contexts
        ):
            reduced = self._compression.decompress(output, context)
            if reduced is not gradient:
                gradient.copy_(reduced)
            if parameter.requires_grad and parameter.grad is not gradient:
                parameter.grad = gradient

    def _reset(self):
        self._in_flight = []
        self._accumulated = False
        for bucket in self._buckets:
            bucket.waiting_for.update(bucket.parameters)
        self.set_passes(self.passes)


def _remove_all(removable):
    for hook in removable:
        hook.remove()
