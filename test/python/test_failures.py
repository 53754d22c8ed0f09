"""Ranks that do not come, die, or are interrupted."""

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


def _alive(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def _sockets():
    """Names of unix sockets of ours, with or without a file."""
    lines = pathlib.Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()
    return {line.split()[-1] for line in lines if "allring" in line}


def test_kill_one_of_four(tmp_path):
    sockets, memory = _sockets(), set(os.listdir("/dev/shm"))
    result = launch.run(4, "kill_worker.py", tmp_path, timeout=60)
    assert result.code == 128 + signal.SIGKILL, result.output
    killed = float((tmp_path / "killed").read_text())
    for rank in (0, 1, 3):
        when, lost, message = (tmp_path / f"error.{rank}").read_text().split("\n", 2)
        assert lost == "2", message
        assert "rank 2" in message and "gradient" in message, message
        assert float(when) - killed < 2, f"rank {rank}: {float(when) - killed:.2f} s"
    pids = [int((tmp_path / f"pid.{rank}").read_text()) for rank in range(4)]
    assert not [pid for pid in pids if _alive(pid)]
    assert not {name for name in _sockets() - sockets if name.startswith("@allring")}
    assert set(os.listdir("/dev/shm")) <= memory


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
