"""The exceptions that Allring raises, one class for each remedy."""


class HorovodInternalError(RuntimeError):
    """A collective failed. Base of the classes that say why; the name is Horovod's."""


class MismatchError(HorovodInternalError):
    """Ranks submitted different things under one name; every rank raises it. The runtime stays
    usable: correct the program, or catch it and go on."""


class PeerLostError(HorovodInternalError):
    """A rank died, froze or was cut off; no collective will work until the job is started anew.

    Attributes:
        rank: the lost rank, or -1 if unknown.
    """

    def __init__(self, message, rank=-1):
        super().__init__(message)
        self.rank = rank

    def __reduce__(self):
        return type(self), (self.args[0], self.rank)


class TimedOutError(HorovodInternalError):
    """Some rank did not do its part in time; the message names it."""


class AbortedError(HorovodInternalError):
    """Given up because of an earlier failure, or because a rank shut down."""


class OutOfMemoryError(HorovodInternalError):
    """Memory, file descriptors or another limit of the system is exhausted."""


class InternalError(HorovodInternalError):
    """A fault of Allring: please report it."""


class InvalidArgumentError(ValueError):
    """The call is wrong by itself; nothing was sent to other ranks."""


class UnsupportedError(NotImplementedError):
    """Not possible in this version, in this build or on this system."""


class HostsUpdatedInterrupt(RuntimeError):
    """The set of hosts changed and the ranks have to meet again.

    Attributes:
        skip_sync: the state need not be sent, as nobody joined.
    """

    def __init__(self, skip_sync=False):
        super().__init__("the hosts of the job have changed")
        self.skip_sync = skip_sync
