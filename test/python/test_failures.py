"""Ranks that do not come, die, or are interrupted."""

import contextlib
import os
import pathlib
import signal
import time

import launch


def test_stall(tmp_path):
    output = launch.check(
        2,
        "stall_worker.py",
        tmp_path / "stalled",
        ALLRING_STALL_CHECK_TIME_SECONDS=0.5,
        ALLRING_STALL_SHUTDOWN_TIME_SECONDS=1.5,
        timeout=40,
    )
    assert "stalled:" in output


def _processes_of(job_id):
    """Processes with the job's environment, living or not yet waited for."""
    found = []
    for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"ALLRING_JOB_ID={job_id}\0".encode() in environ.read_bytes():
                found.append(environ.parent.name)
    return found


def _sockets_of(job_id, pids):
    """Unix sockets of the job, with or without a file."""
    lines = pathlib.Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    marks = [job_id, *(f"-{pid}-" for pid in pids)]
    return [line for line in lines if "allring" in line and any(mark in line for mark in marks)]


def test_kill_one_of_four(tmp_path):
    result = launch.run(4, "kill_worker.py", tmp_path, timeout=60)
    assert result.code == 128 + signal.SIGKILL, result.output
    killed = float((tmp_path / "killed").read_text())
    for rank in (0, 1, 3):
        when, lost, message = (tmp_path / f"error.{rank}").read_text().split("\n", 2)
        assert lost == "2", message
        assert "rank 2" in message and "gradient" in message, message
        assert float(when) - killed < 2, f"rank {rank}: {float(when) - killed:.2f} s"
    job_id, *pids = (tmp_path / "job").read_text().split()
    assert len(pids) == 4
    assert not _processes_of(job_id)
    assert not _sockets_of(job_id, pids)
    assert not [name for name in os.listdir("/dev/shm") if "allring" in name]


def test_exception_of_one_rank():
    result = launch.run(3, "raise_worker.py")
    assert result.code == 1, result.output
    assert "KeyError: 'the cause'" in result.output
    assert "rank 1" in result.output and "failed first: exit code 1" in result.output


def test_interrupt():
    """^C, as a terminal sends it: to all processes of the foreground group."""
    child = launch.start(
        [launch.hvdrun(), "-np", 2, launch.sys.executable, launch.WORKERS / "interrupt_worker.py"],
        launch.environment(),
    )
    try:
        for line in child.stdout:
            if "waiting" in line:
                break
        start = time.monotonic()
        os.killpg(child.pid, signal.SIGINT)
        result = launch.collect([child], timeout=30)
    finally:
        launch.end(child)
    assert "interrupted" in result.output
    assert time.monotonic() - start < 15
    assert result.code != 0
