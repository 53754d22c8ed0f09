"""Operations under way: what keeps their memory alive, and how to wait for them.

A buffer must outlive the operation that uses it, whether or not the program still holds the
buffer or the handle. So this module, not the handle, owns the references: they are dropped when
the operation is seen to be done, and no later than at shutdown.
"""

import collections
import ctypes
import math
import threading
import weakref

from . import _library, errors

# A wait is cut into slices of this length, between which Python sees signals such as ^C.
_SLICE_MS = 200

_library_wait = _library.library.allring_wait
_library_poll = _library.library.allring_poll
_library_release = _library.library.allring_release

# What must stay alive until the operation is done, by the library's handle.
_in_flight = {}
# What submissions use until they are in _in_flight. An interrupt between leaves it here for good:
# nobody knows then whether a lane is at work on it.
_submitting = {}
# Handles that the program dropped before their operation was seen to be done.
_orphans = collections.deque()
_claim = threading.Lock()
# Number of shutdowns so far; handles of an earlier epoch are dead.
_epoch = 0


class Handle:
    """An operation under way, as every ``*_async`` function returns it.

    Give it to :func:`synchronize` for the result. A handle that is dropped without it leaves its
    operation running; the memory that it uses stays valid until it is done.
    """

    __slots__ = ("_epoch", "_finish", "_native")

    def __init__(self, native, finish):
        self._native = native
        self._finish = finish
        self._epoch = _epoch

    def __del__(self, orphans=_orphans):
        if self._native is not None:
            orphans.append((self._epoch, self._native))


class _Outputs:
    """Owns a finished operation of which the library allocated the results."""

    __slots__ = ("_epoch", "_native")

    def __init__(self, native):
        self._native = native
        self._epoch = _epoch

    def __del__(self, release=_library_release):
        release(self._native)


def start(submission, keep, finish):
    """Submits an operation and registers it.

    Args:
        submission: called once; returns the library's handle.
        keep: whatever must stay alive until the operation is done.
        finish: called with `native` once it has succeeded; returns the result and is responsible
            for releasing `native`, by release() or outputs().
    """
    if _orphans:
        _reap()
    place = object()
    _submitting[place] = keep
    try:
        native = submission()
    except Exception:
        del _submitting[place]
        raise
    _in_flight[native] = keep
    del _submitting[place]
    return Handle(native, finish)


def _reap():
    """Releases the dropped handles whose operations are done."""
    for _ in range(len(_orphans)):
        try:
            epoch, native = _orphans.popleft()
        except IndexError:  # another thread reaps, too
            return
        if epoch != _epoch:
            continue
        if _library_poll(native) == 0:
            _orphans.append((epoch, native))
        else:
            _in_flight.pop(native, None)
            _library_release(native)


def poll(handle):
    """True if the operation is done, well or not, so that synchronize() would not block."""
    native = _checked(handle)._native
    if native is None or handle._epoch != _epoch:
        return True
    return _library_poll(native) != 0


def synchronize(handle):
    """Waits until an operation is done and returns its result; once for each handle.

    Other Python threads run meanwhile, and ^C interrupts the wait, after which the handle can
    be waited for again.

    Returns:
        What the blocking form of the operation returns; of an alltoall always the pair (output,
        received splits).

    Raises:
        MismatchError, PeerLostError, TimedOutError, AbortedError, ...: the operation failed.
        ValueError: this handle was synchronized already.

    Example::

        handle = allring.allreduce_async(gradient, name="gradient")
        ...  # other work
        average = allring.synchronize(handle)
    """
    _checked(handle)
    native = handle._native
    if native is None:
        raise _synchronized_twice()
    if handle._epoch == _epoch:
        status = _library_wait(native, _SLICE_MS)
        while status == _library.IN_PROGRESS:
            status = _library_wait(native, _SLICE_MS)
        failure = _library.failure(status) if status != _library.OK else None
    if handle._epoch != _epoch:
        failure = errors.AbortedError(
            "Allring was shut down before the result of this operation was asked for"
        )
    with _claim:  # of two threads that wait for one handle, one gets the result
        if handle._native is None:
            raise _synchronized_twice()
        handle._native = None
    finish, handle._finish = handle._finish, None
    keep = _in_flight.pop(native, None)
    if failure is not None:
        if handle._epoch == _epoch:
            _library_release(native)
        raise failure
    result = finish(native)
    del keep
    return result


def _checked(handle):
    if not isinstance(handle, Handle):
        raise errors.InvalidArgumentError(
            f"expected a handle that an *_async function returned, got {type(handle).__name__}"
        )
    return handle


def _synchronized_twice():
    return errors.InvalidArgumentError(
        "this handle was synchronized already; each handle yields its result once"
    )


def release(native):
    """Forgets a finished operation whose results are the caller's own memory."""
    _library_release(native)


def outputs(native, item_sizes):
    """The results that the library allocated for a finished operation, without a copy.

    Args:
        native: the library's handle; it is released when nothing uses the results any more.
        item_sizes: bytes of one element, for each result.

    Returns:
        For each result a pair (memory, shape): a writable ctypes array of bytes, which keeps the
        library's memory alive for as long as itself lives, or None where there are no bytes; and a
        tuple.
    """
    owner = _Outputs(native)
    data = ctypes.c_void_p()
    ndim = ctypes.c_int()
    extents = (ctypes.c_int64 * _library.MAX_DIMENSIONS)()
    found = []
    for index, item_size in enumerate(item_sizes):
        _library.check(
            _library.library.allring_output(
                native, index, ctypes.byref(data), ctypes.byref(ndim), extents
            )
        )
        shape = tuple(extents[: ndim.value])
        size_bytes = math.prod(shape) * item_size
        memory = None
        if size_bytes:
            memory = (ctypes.c_ubyte * size_bytes).from_address(data.value)
            # The finalizer's arguments are what keeps the owner.
            weakref.finalize(memory, _drop, owner).atexit = False
        found.append((memory, shape))
    return found


def _drop(_owner):
    """Does nothing: the reference to the owner goes with the call."""


def invalidate():
    """Forgets everything in flight; the runtime must have stopped.

    Results that the program holds are not in flight, and stay.
    """
    global _epoch
    _epoch += 1
    for native in list(_in_flight):
        _library_release(native)
    _in_flight.clear()
    _orphans.clear()


def keep_for_ever():
    """Keeps what is in flight until the process has ended, as the runtime goes on."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_in_flight))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_submitting))


def epoch():
    """Number of shutdowns so far."""
    return _epoch
