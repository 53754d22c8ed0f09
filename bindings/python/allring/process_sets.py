"""Process sets: which ranks take part in an operation. This version has one, of all ranks."""

from . import _library, errors


class ProcessSet:
    """A set of ranks; `global_process_set` is the only one in this version.

    Attributes:
        process_set_id: its number in the runtime.
    """

    def __init__(self, ranks):
        raise errors.UnsupportedError(
            f"ProcessSet({ranks!r}) cannot be made in this version: use global_process_set"
        )

    @property
    def ranks(self):
        """Its ranks, sorted; None before init()."""
        size = self.size()
        return None if size is None else list(range(size))

    def size(self):
        """Number of its ranks; None before init()."""
        size = _library.library.allring_size()
        return size if size >= 0 else None

    def rank(self):
        """This process's place in it; None before init()."""
        rank = _library.library.allring_rank()
        return rank if rank >= 0 else None

    def included(self):
        """Whether this process is in it; None before init()."""
        return None if self.rank() is None else True

    def __repr__(self):
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet.__new__(ProcessSet)
global_process_set.process_set_id = 0


def native_id(process_set):
    """The set's number in the runtime; ValueError if it is no process set."""
    if not isinstance(process_set, ProcessSet):
        raise errors.InvalidArgumentError(
            f"process_set must be a ProcessSet, got {type(process_set).__name__}"
        )
    return process_set.process_set_id
