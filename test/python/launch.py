"""Starts programs of several ranks, bounds their time, and leaves none of them behind.

Uses the hvdrun and the library of the installation that pytest runs in, or those that
ALLRING_HVDRUN and ALLRING_LIBRARY name.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORKERS = HERE / "workers"


class Result:
    """How a program ended.

    Attributes:
        code: exit status of the whole; of ranks without a launcher the first that is not 0.
        output: what all ranks wrote, both streams.
    """

    def __init__(self, code, output):
        self.code = code
        self.output = output


def hvdrun():
    """Path of the launcher."""
    beside = pathlib.Path(sys.executable).parent / "hvdrun"
    found = os.environ.get("ALLRING_HVDRUN") or (
        str(beside) if beside.exists() else shutil.which("hvdrun")
    )
    if not found:
        raise FileNotFoundError("no hvdrun: install allring, or set ALLRING_HVDRUN")
    return found


def environment(**changes):
    """The tests' environment for a child: one thread per rank, and our sources if they are used."""
    env = dict(os.environ, OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1")
    path = [str(WORKERS)]
    if "ALLRING_LIBRARY" in env:
        path.insert(0, str(ROOT / "bindings" / "python"))
    if env.get("PYTHONPATH"):
        path.append(env["PYTHONPATH"])
    env["PYTHONPATH"] = os.pathsep.join(path)
    env.update({name: str(value) for name, value in changes.items()})
    return env


def start(command, env):
    """A child in a session of its own, its output in one pipe."""
    return subprocess.Popen(
        [str(part) for part in command],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def end(child):
    """Kills the child's session, if anything of it is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdout is not None:
        child.stdout.close()


def collect(children, timeout):
    """Waits for all; kills all if that takes longer than `timeout` seconds."""
    codes, outputs = [], []
    try:
        for child in children:
            try:
                output, _ = child.communicate(timeout=timeout)
            except subprocess.TimeoutExpired as expired:
                for each in children:
                    end(each)
                raise AssertionError(
                    f"not done after {timeout} s; its output so far:\n{_text(expired.output)}"
                ) from None
            codes.append(child.returncode)
            outputs.append(output)
    finally:
        for child in children:
            end(child)
    return Result(next((code for code in codes if code), 0), "".join(outputs))


def _text(output):
    if isinstance(output, bytes):
        return output.decode("utf-8", "replace")
    return output or ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(ranks, program, *args, timeout=100, starter="hvdrun", **variables):
    """Runs a Python program on `ranks` ranks and returns its Result.

    Args:
        program: path, or a name in workers/.
        starter: "hvdrun", "mpirun", "torchrun" (its variables), or "alone".
        variables: changes to the environment.
    """
    program = WORKERS / program
    python = [sys.executable, program, *args]
    env = environment(**variables)
    if starter == "hvdrun":
        return collect([start([hvdrun(), "-np", ranks, *python], env)], timeout)
    if starter == "mpirun":
        allow = ["--allow-run-as-root", "--oversubscribe"]
        return collect([start(["mpirun", *allow, "-np", ranks, *python], env)], timeout)
    if starter == "alone":
        return collect([start(python, env)], timeout)
    assert starter == "torchrun"
    port = free_port()
    children = []
    for rank in range(ranks):
        place = {
            "RANK": rank,
            "LOCAL_RANK": rank,
            "WORLD_SIZE": ranks,
            "LOCAL_WORLD_SIZE": ranks,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        children.append(start(python, environment(**place, **variables)))
    return collect(children, timeout)


def check(*args, **kwargs):
    """run(), and the program must end well; returns its output."""
    result = run(*args, **kwargs)
    assert result.code == 0, f"exit status {result.code}\n{result.output}"
    return result.output
