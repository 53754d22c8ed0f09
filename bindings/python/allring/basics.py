"""Joining and leaving the job, this process's place in it, and what the library can do."""

import atexit
import json
import os
import sys

from . import _library, errors, handles

_library_init = _library.library.allring_init
_registered = False

_PLACE = [
    "rank",
    "size",
    "local_rank",
    "local_size",
    "cross_rank",
    "cross_size",
    "is_homogeneous",
]
# The process that called init(), and its answers: a forked child cannot ask the library.
_owner = None
_before_fork = {}


def init(comm=None, process_sets=None):
    """Joins the job that the environment describes and returns when all ranks have met.

    Without a launcher's environment the job has one rank. Calling it again does nothing; it may be
    called again after shutdown(), which the end of the interpreter calls by itself unless an
    exception is the cause: then the other ranks get a PeerLostError.

    Args:
        comm, process_sets: must be None or empty: this version has only the set of all ranks.

    Raises:
        TimedOutError: not all ranks came in time; rank 0's message names the missing.
        ValueError: the environment contradicts itself.

    Example::

        import allring
        allring.init()
        print(allring.rank(), "of", allring.size())
    """
    if comm is not None:
        raise errors.UnsupportedError(
            "init(comm=...) is not available in this version: the job is always all of its ranks"
        )
    if process_sets:
        raise errors.UnsupportedError(
            "init(process_sets=...) is not available in this version: it has only the set of all "
            "ranks, global_process_set"
        )
    _library.check(_library_init())
    _before_fork.update((name, _ask(name)) for name in _PLACE)
    global _owner, _registered
    _owner = os.getpid()
    if not _registered:
        atexit.register(_leave)
        _registered = True


def shutdown():
    """Leaves the job. What is under way fails with AbortedError, here and soon on all ranks.

    Returns when the runtime's threads have ended; does nothing when not initialized. Call it on
    all ranks at the same point of the program.
    """
    if is_initialized():
        _library.check(_library.library.allring_shutdown())
        _before_fork.clear()
        handles.invalidate()


def _leave():
    """At the end of the interpreter."""
    if getattr(sys, "last_value", None) is None:
        shutdown()
    else:
        # An exception ends the program. Leaving in an orderly way would let the others end before
        # this process does, and the cause would look like a consequence. So they see it end.
        handles.keep_for_ever()


def is_initialized():
    """Whether init() was called, and shutdown() was not since."""
    return _library.library.allring_is_initialized() == 1


def _ask(name):
    return getattr(_library.library, "allring_" + name)()


def _place(name):
    value = _ask(name)
    if value < 0 and os.getpid() != _owner:
        value = _before_fork.get(name, -1)
    if value < 0:
        raise errors.InvalidArgumentError(
            "Allring is not initialized in this process: call init() first"
        )
    return value


def rank():
    """This process's number in the job, 0 to size() - 1. ValueError if not initialized."""
    return _place("rank")


def size():
    """Number of ranks in the job. ValueError if not initialized."""
    return _place("size")


def local_rank():
    """This process's number among those of its host. ValueError if not initialized."""
    return _place("local_rank")


def local_size():
    """Number of ranks on this host. ValueError if not initialized."""
    return _place("local_size")


def cross_rank():
    """This host's number among those that have this local_rank(). ValueError if not initialized."""
    return _place("cross_rank")


def cross_size():
    """Number of hosts that have this local_rank(). ValueError if not initialized."""
    return _place("cross_size")


def is_homogeneous():
    """Whether all hosts have equally many ranks. ValueError if not initialized."""
    return _place("is_homogeneous") == 1


def describe():
    """What the library is: its version, instruction set, transports and options, as a dict."""
    return json.loads(_library.describe())
