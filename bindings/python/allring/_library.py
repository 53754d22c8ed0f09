"""Finds liballring.so, loads it, and declares its C interface (bindings/c/allring.h) to ctypes."""

import ctypes
import os

from . import errors

ABI_VERSION = 1

# allring_status
OK = 0
INVALID_ARGUMENT = 1
MISMATCH = 2
PEER_LOST = 3
TIMED_OUT = 4
ABORTED = 5
UNSUPPORTED = 6
OUT_OF_MEMORY = 7
INTERNAL = 8
IN_PROGRESS = 9

# allring_dtype by the name that numpy and torch share.
DTYPES = {
    "uint8": 0,
    "int8": 1,
    "uint16": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bool": 9,
    "bfloat16": 10,
}

# allring_kind
KIND_ALLREDUCE = 0
KIND_REDUCE_SCATTER = 1
KIND_ALLGATHER = 2
KIND_BROADCAST = 3

MAX_DIMENSIONS = 64

_ERRORS = {
    INVALID_ARGUMENT: errors.InvalidArgumentError,
    MISMATCH: errors.MismatchError,
    TIMED_OUT: errors.TimedOutError,
    ABORTED: errors.AbortedError,
    UNSUPPORTED: errors.UnsupportedError,
    OUT_OF_MEMORY: errors.OutOfMemoryError,
}


class Tensor(ctypes.Structure):
    """allring_tensor: one member of a group."""

    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("dtype", ctypes.c_int32),
    ]


_int = ctypes.c_int
_int64 = ctypes.c_int64
_double = ctypes.c_double
_name = ctypes.c_char_p
_pointer = ctypes.c_void_p
_extents = ctypes.POINTER(ctypes.c_int64)
_handle_out = ctypes.POINTER(ctypes.c_int64)

_PROTOTYPES = {
    "allring_version": (ctypes.c_char_p, []),
    "allring_abi_version": (_int, []),
    "allring_last_error": (ctypes.c_char_p, []),
    "allring_last_error_rank": (_int, []),
    "allring_init": (_int, []),
    "allring_shutdown": (_int, []),
    "allring_is_initialized": (_int, []),
    "allring_rank": (_int, []),
    "allring_size": (_int, []),
    "allring_local_rank": (_int, []),
    "allring_local_size": (_int, []),
    "allring_cross_rank": (_int, []),
    "allring_cross_size": (_int, []),
    "allring_is_homogeneous": (_int, []),
    "allring_allreduce_async": (
        _int,
        [_name, _pointer, _pointer, _int, _extents, _int, _int, _double, _double, _int]
        + [_handle_out],
    ),
    "allring_allgather_async": (_int, [_name, _pointer, _int, _extents, _int, _int, _handle_out]),
    "allring_broadcast_async": (
        _int,
        [_name, _pointer, _pointer, _int, _extents, _int, _int, _int, _handle_out],
    ),
    "allring_alltoall_async": (
        _int,
        [_name, _pointer, _int, _extents, _int, _int, _extents, _int, _handle_out],
    ),
    "allring_reduce_scatter_async": (
        _int,
        [_name, _pointer, _int, _extents, _int, _int, _double, _double, _int, _handle_out],
    ),
    "allring_barrier_async": (_int, [_int, _handle_out]),
    "allring_grouped_async": (
        _int,
        [_int, _name, _int, ctypes.POINTER(Tensor), _int, _double, _double, _int, _int]
        + [_handle_out],
    ),
    "allring_poll": (_int, [_int64]),
    "allring_wait": (_int, [_int64, _int64]),
    "allring_output": (
        _int,
        [_int64, _int, ctypes.POINTER(_pointer), ctypes.POINTER(_int), _extents],
    ),
    "allring_received_splits": (_int, [_int64, _extents]),
    "allring_release": (_int, [_int64]),
    "allring_describe": (_int64, [ctypes.c_char_p, ctypes.c_size_t]),
}


def _path():
    chosen = os.environ.get("ALLRING_LIBRARY")
    if chosen:
        return chosen
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "liballring.so")


def _load():
    path = _path()
    try:
        # RTLD_LOCAL, which is the default: our symbols are nobody else's business.
        library = ctypes.CDLL(path)
        library.allring_abi_version.restype = _int
        abi = library.allring_abi_version()
        if abi != ABI_VERSION:
            raise ImportError(
                f"{path} speaks version {abi} of Allring's C interface, but this package needs "
                f"version {ABI_VERSION}: reinstall allring, or unset ALLRING_LIBRARY"
            )
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.restype = result
            function.argtypes = arguments
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"cannot load Allring's library {path}: {error}. Install it with `pip install .` in "
            "Allring's source tree, or let ALLRING_LIBRARY name a liballring.so"
        ) from error
    return library


library = _load()


def failure(status):
    """The exception for a status that the calling thread has just got from the library."""
    message = library.allring_last_error().decode("utf-8", "replace")
    if status == PEER_LOST:
        return errors.PeerLostError(message, library.allring_last_error_rank())
    return _ERRORS.get(status, errors.InternalError)(message)


def check(status):
    """Raises unless `status` is success."""
    if status != OK:
        raise failure(status)


def describe():
    """allring_describe() as text."""
    room = 4096
    while True:
        buffer = ctypes.create_string_buffer(room)
        needed = library.allring_describe(buffer, room)
        if needed < 0:
            raise errors.InternalError("the library cannot describe itself")
        if needed < room:
            return buffer.value.decode("utf-8", "replace")
        room = needed + 1
