"""What the library can do, under the names by which Horovod's scripts ask."""

from . import basics


def _moves_by(name):
    return name in basics.describe()["transports"]


def mpi_built(verbose=False):
    """Whether collectives can run over MPI. (mpirun can start jobs in any case.)"""
    return _moves_by("mpi")


def mpi_enabled():
    """Whether collectives can run over MPI."""
    return mpi_built()


def mpi_threads_supported():
    """Whether MPI may be used by several threads at once; ValueError if not initialized."""
    basics.rank()
    return mpi_built()


def nccl_built(verbose=False):
    """Non-zero if collectives can run over NCCL."""
    return int(_moves_by("nccl"))


def gloo_built(verbose=False):
    """False: Allring has its own transports and does not contain Gloo."""
    return False


def gloo_enabled():
    """False: Allring has its own transports and does not contain Gloo."""
    return False


def ddl_built(verbose=False):
    """False: Allring does not contain IBM's DDL."""
    return False


def ccl_built(verbose=False):
    """False: Allring does not contain Intel's oneCCL."""
    return False


def cuda_built(verbose=False):
    """Whether collectives can run on the memory of CUDA devices, without staging in host memory."""
    return bool(nccl_built())


def rocm_built(verbose=False):
    """False: Allring does not use ROCm."""
    return False
