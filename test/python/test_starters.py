"""The same program under each starter, and joining and leaving a job."""

import os
import shutil

import pytest

import launch

EXAMPLES = launch.ROOT / "examples"


@pytest.mark.parametrize("starter", ["hvdrun", "mpirun", "torchrun"])
def test_starter(starter):
    if starter == "mpirun" and not shutil.which("mpirun"):
        pytest.fail("no mpirun: apt-get install openmpi-bin")
    output = launch.check(2, EXAMPLES / "numpy_allreduce.py", starter=starter)
    for rank in (0, 1):
        assert f"rank {rank} of 2: [0. 3. 6. 9.]" in output


def test_alone():
    output = launch.check(1, EXAMPLES / "numpy_allreduce.py", starter="alone")
    assert "rank 0 of 1: [0. 1. 2. 3.]" in output


def test_join_and_leave_many_times():
    launch.check(2, "restart_worker.py", 50)
    launch.check(1, "restart_worker.py", 50, starter="alone")


def test_idle():
    # Timing of a busy machine says nothing about us, so give the ranks some time.
    output = launch.check(2, "idle_worker.py", 3 if (os.cpu_count() or 1) > 1 else 6)
    assert output.count("idle share") == 2
