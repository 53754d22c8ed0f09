"""hvdrun over ssh on several hosts, which are namespaces of this machine (test/lab).

Runs the installed hvdrun, or the one that ALLRING_HVDRUN names. Needs root and the lab's packages.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

import pytest

CLUSTER = pathlib.Path(__file__).resolve().parent.parent / "lab" / "cluster"
WORKERS = CLUSTER.parent.parent / "python" / "workers"
TIMEOUT_S = 120

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the lab makes namespaces: needs root")


def wait_until(condition, timeout_s=30):
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class Lab:
    """Three hosts h0, h1 and h2, on two networks; a job starts on h0."""

    def __init__(self, folder):
        # Everything but /tmp, /run and /dev/shm is shared by the hosts.
        self.folder = pathlib.Path(folder)
        beside = pathlib.Path(sys.executable).parent / "hvdrun"
        found = os.environ.get("ALLRING_HVDRUN") or (
            str(beside) if beside.exists() else shutil.which("hvdrun")
        )
        assert found, "no hvdrun: install allring, or set ALLRING_HVDRUN"
        self.hvdrun = self.folder / "hvdrun"
        shutil.copy(os.path.realpath(found), self.hvdrun)
        self.environment = {
            **{n: v for n, v in os.environ.items() if not n.startswith(("HVDRUN_", "OMP_"))},
            "CLUSTER_NAME": "hvdrun",
            "CLUSTER_NET": "10.79",
            "CLUSTER_DIR": str(self.folder / "cluster"),
        }

    def cluster(self, *words):
        return subprocess.run(
            [CLUSTER, *map(str, words)], env=self.environment, check=True, timeout=TIMEOUT_S
        )

    def start(self, *words, host="h0", hvdrun=None, **variables):
        self.token = "lab-" + uuid.uuid4().hex
        return subprocess.Popen(
            [CLUSTER, "exec", host, hvdrun or self.hvdrun, *map(str, words)],
            env={**self.environment, "LAB_TOKEN": self.token, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words, **options):
        return self.end(self.start(*words, **options))

    def end(self, process):
        try:
            out, err = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def left(self):
        """Processes of the last job on any host; the lab's own processes are not among them."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/stat", "rb") as f:
                    if f.read().rpartition(b")")[2].split()[0] in (b"Z", b"X"):
                        continue
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if self.token.encode() in f.read():
                        found.append(int(pid))
        return found

    def ranks_up(self, count):
        """Waits until so many ranks have made their mark, see SLEEPER."""
        return wait_until(lambda: len(list(self.folder.glob(self.token + ".*"))) == count)

    def sleeper(self):
        """A rank with a child that has left its session, who say that they are there."""
        script = (
            "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' >/dev/null 2>&1 & "
            f"touch {self.folder}/$LAB_TOKEN.$RANK; exec sleep 1000"
        )
        return ["sh", "-c", script]


@pytest.fixture(scope="module")
def lab():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        lab = Lab(folder)
        lab.cluster("down")
        lab.cluster("up", "3", "--nics", "2")
        try:
            yield lab
        finally:
            lab.cluster("down")


@pytest.fixture(autouse=True)
def nothing_is_left(lab):
    yield
    gone = wait_until(lambda: not lab.left())
    left = lab.left()
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    assert gone, f"processes are left: {left}"


def driver_of(lab):
    """The process of the driver; the one on h0 that is no agent."""
    for pid in lab.left():
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if words[0] == os.fsencode(lab.hvdrun) and words[1] != b"--agent":
                return pid
    raise AssertionError("no driver")


def agents_of(lab, name=b"--agent"):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            if f.read() == os.fsencode(lab.hvdrun) + b"\0" + name + b"\0":
                found.append(int(pid))
    return found


def test_ranks_on_two_hosts(lab):
    script = (
        "echo $RANK $(hostname) $ALLRING_HOSTNAME $LOCAL_RANK $ALLRING_CROSS_RANK $GROUP_RANK "
        "$ALLRING_CROSS_SIZE $ALLRING_SINGLE_HOST $MASTER_ADDR $PWD"
    )
    result = lab.run("-np", 4, "-H", "h0:2,h1:2", "sh", "-c", script)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(result.stdout.splitlines()) == [
        f"[{r}]<stdout>:{r} h{h} h{h} {r % 2} {h} {h} 2 0 10.79.0.1 {os.getcwd()}"
        for r, h in enumerate([0, 0, 1, 1])
    ]


def test_a_deterministic_job_gives_the_same_bits_on_any_hosts(lab):
    def bits(hosts, **variables):
        result = lab.run(
            *("-np", 4, "-H", hosts, sys.executable, WORKERS / "deterministic_worker.py"),
            **{"ALLRING_DETERMINISTIC": "1", **variables},
        )
        assert (result.returncode, result.stderr) == (0, "")
        lines = {line.partition(":")[2] for line in result.stdout.splitlines()}
        assert len(lines) == 1, "ranks differ"
        return lines.pop()

    expected = bits("h0:4")
    assert bits("h0:2,h1:2") == expected
    assert bits("h0:2,h1:1,h2:1", ALLRING_FUSION_THRESHOLD="0") == expected
    # Or this test could not fail: the hierarchy adds in another order.
    other = {
        "ALLRING_DETERMINISTIC": "0",
        "ALLRING_ALGORITHM": "hierarchical",
        "ALLRING_LOG_LEVEL": "error",  # which cannot sum 16-bit floats, and says so
    }
    assert bits("h0:2,h1:2", **other) != expected


def test_environment_and_arguments_are_equal_byte_for_byte(lab):
    words = ["", " ", "a'b\"c", "new\nline", "$HOME `id` \\", "*"]
    values = {"ODD": " 'a' \"b\"\n$x ", "LONG": "z" * 130_000}
    values.update({f"LONG{i}": chr(65 + i) * 120_000 for i in range(9)})
    target = lab.folder / "dump"
    script = (
        "import json, os, sys\n"
        f"json.dump([sys.argv, dict(os.environ)], open('{target}.' + os.environ['RANK'], 'w'))"
    )
    options = ["-H", "h0,h1", "-x", "dotted.name=\n"]  # a name that shells drop
    result = lab.run(*options, sys.executable, "-c", script, *words, **values)
    assert (result.returncode, result.stderr) == (0, "")
    for rank in range(2):
        with open(f"{target}.{rank}") as f:
            argv, environment = json.load(f)
        assert argv == ["-c", *words]
        for name, value in {**values, "dotted.name": "\n", "LAB_TOKEN": lab.token}.items():
            assert environment[name] == value


def test_what_speaks_of_the_host_stays_there(lab):
    script = "echo $RANK ${DISPLAY-unset} $GIVEN"
    result = lab.run("-H", "h0,h1,h2", "-x", "GIVEN=a", "sh", "-c", script, DISPLAY=":7")
    assert sorted(result.stdout.splitlines()) == [
        "[0]<stdout>:0 :7 a",
        "[1]<stdout>:1 unset a",
        "[2]<stdout>:2 unset a",
    ]
    result = lab.run("-H", "h0,h1", "-x", "DISPLAY", "sh", "-c", "echo $DISPLAY", DISPLAY=":7")
    assert sorted(result.stdout.splitlines()) == ["[0]<stdout>::7", "[1]<stdout>::7"]


def test_secrets_are_in_no_listing(lab):
    """Neither the job's secret nor a value of the environment is in any process's arguments."""
    process = lab.start("-H", "h0,h1", "-x", "TOPSECRET", *lab.sleeper(), TOPSECRET="s3cr3t")
    assert lab.ranks_up(2)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            assert b"s3cr3t" not in f.read()
    os.kill(driver_of(lab), signal.SIGTERM)
    lab.end(process)


def test_nothing_listens(lab):
    process = lab.start("-H", "h0,h1", *lab.sleeper())
    assert lab.ranks_up(2)
    for host in ("h0", "h1"):
        listing = subprocess.run(
            [CLUSTER, "exec", host, "cat", "/proc/net/tcp", "/proc/net/tcp6"],
            env=lab.environment,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        ).stdout.splitlines()
        ports = {int(line.split()[1].split(":")[1], 16) for line in listing if " 0A " in line}
        assert ports == {22}
    os.kill(driver_of(lab), signal.SIGTERM)
    lab.end(process)


def test_a_large_output_over_ssh(lab):
    script = (
        "import os, sys\n"
        "for i in range(20000):\n"
        "    sys.stdout.write('%s %d ' % (os.environ['RANK'], i) + 'x' * 180 + '\\n')"
    )
    result = lab.run("-H", "h1,h2", sys.executable, "-c", script)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    for rank in range(2):
        prefix = f"[{rank}]<stdout>:"
        assert [line[len(prefix) :] for line in lines if line.startswith(prefix)] == [
            f"{rank} {i} " + "x" * 180 for i in range(20000)
        ]


def test_stdin_reaches_rank_0_on_another_host(lab):
    process = subprocess.run(
        [CLUSTER, "exec", "h0", lab.hvdrun, "-H", "h1,h2", "cat"],
        input="a\nb\n",
        stdout=subprocess.PIPE,
        env={**lab.environment, "LAB_TOKEN": lab.token},
        timeout=TIMEOUT_S,
        text=True,
    )
    assert process.returncode == 0
    assert process.stdout == "[0]<stdout>:a\n[0]<stdout>:b\n"


def test_first_cause_across_hosts(lab):
    script = "test $RANK = 2 && kill -9 $$; exec sleep 1000"
    result = lab.run("-H", "h0:2,h1:2", "sh", "-c", script)
    assert result.returncode == 137
    assert "rank 2 on host h1 failed first: killed by signal 9 (Killed)" in result.stderr
    assert "ranks 0, 1 and 3: killed by signal 15" in result.stderr


def test_interrupt(lab):
    process = lab.start("-H", "h0,h1", *lab.sleeper())
    assert lab.ranks_up(2)
    os.kill(driver_of(lab), signal.SIGINT)
    assert lab.end(process).returncode == 130


def test_killing_the_driver_ends_all_hosts(lab):
    process = lab.start("-H", "h0,h1,h2", *lab.sleeper())
    assert lab.ranks_up(3)
    os.kill(driver_of(lab), signal.SIGKILL)
    assert wait_until(lambda: not lab.left() and not agents_of(lab), 10)
    lab.end(process)


def test_killing_a_remote_agent_is_swept_up(lab):
    process = lab.start("-H", "h1", *lab.sleeper())
    assert lab.ranks_up(1)
    (agent,) = agents_of(lab)
    os.kill(agent, signal.SIGKILL)
    result = lab.end(process)
    assert result.returncode != 0
    assert "host h1 is lost: ssh to it ended with exit code" in result.stderr
    assert not lab.left()


@pytest.mark.slow
def test_a_frozen_host_is_an_error(lab):
    process = lab.start("-H", "h0,h1", *lab.sleeper())
    assert lab.ranks_up(2)
    lab.cluster("freeze", "h1")
    try:
        result = lab.end(process)
    finally:
        lab.cluster("thaw", "h1")
    assert result.returncode == 1
    assert "rank 1 on host h1 failed first: lost with its host: no sign of life" in result.stderr


@pytest.mark.slow
def test_a_crashed_host_is_an_error(lab):
    process = lab.start("-H", "h0,h2", *lab.sleeper())
    assert lab.ranks_up(2)
    lab.cluster("crash", "h2")
    try:
        result = lab.end(process)
    finally:
        lab.cluster("boot", "h2")
    assert result.returncode == 1
    assert "rank 1 on host h2 failed first: lost with its host" in result.stderr


# Sums until a sum is wrong (exit code 7) or an error ends it.
SUMMING = """
import pathlib, os, sys
import numpy as np
import allring
allring.init()
element = np.arange(300_000, dtype=np.float32) % 1000
expected = sum(element + rank for rank in range(allring.size()))
for step in range(100_000):
    total = allring.allreduce(element + allring.rank(), op=allring.Sum, name=f"sum.{step % 3}")
    if not np.array_equal(total, expected):
        os._exit(7)
    if step == 2:
        pathlib.Path(sys.argv[1] + "." + os.environ["RANK"]).touch()
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_bits_that_flip_between_hosts_give_an_error_that_names_the_link(lab, seed):
    """Ranks speak over the second network, so that ssh and the agents' stream stay whole."""
    target = lab.folder / f"summed.{seed}"
    process = lab.start(
        *("-H", "h0,h1,h2", "--network-interfaces", "eth1"),
        *(sys.executable, "-c", SUMMING, target),
    )
    try:
        assert wait_until(lambda: len(list(lab.folder.glob(target.name + ".*"))) == 3)
        lab.cluster("shape", "h1", "nic", 1, "corrupt", "1%", "seed", seed)
        result = lab.end(process)
    finally:
        lab.cluster("shape", "h1", "nic", 1, "off")
    assert result.returncode not in (0, 7), result.stderr
    link = r"from rank (\d) \(host h(\d)\b[^)]*\) to rank (\d) \(host h(\d)\b[^)]*\)"
    named = re.search(link + "[^\n]*arrived with a wrong CRC32C", result.stderr)
    assert named, result.stderr
    sender, sender_host, receiver, receiver_host = named.groups()
    assert (sender, receiver) == (sender_host, receiver_host)
    assert sender != receiver and "1" in (sender, receiver)


def refusal(lab, *words, code, says, **options):
    result = lab.run(*words, **options)
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("hvdrun: ")
    assert says in result.stderr


def test_hosts_that_cannot_be_reached(lab):
    refusal(lab, "-H", "h0,nowhere", "true", code=2, says="host nowhere: ssh: Could not resolve")
    refusal(
        lab, "-H", "h0,h1", "-p", 2, "true", code=1, says="Connection refused; try: ssh -p 2 h1"
    )
    refusal(lab, "-H", "h0,nobody@h1", "true", code=1, says="without a password")
    lab.cluster("cut", "h1")
    try:
        says = "host h1: no answer within --start-timeout (2 s); try: ssh h1"
        refusal(lab, "-H", "h0,h1", "--start-timeout", 2, "true", code=1, says=says)
    finally:
        lab.cluster("heal", "h1")


def test_hvdrun_is_missing_there(lab):
    missing = ["-H", "h0,h1", "--remote-hvdrun", "/no/hvdrun", "true"]
    refusal(lab, *missing, code=2, says="host h1: there is no program /no/hvdrun")
    # /tmp is each host's own.
    lab.cluster("exec", "h0", "cp", lab.hvdrun, "/tmp/hvdrun")
    says = "host h1: hvdrun is neither /tmp/hvdrun nor on PATH there"
    refusal(lab, "-H", "h0,h1", "true", code=2, says=says, hvdrun="/tmp/hvdrun")
    path = f"{lab.folder}:{os.environ['PATH']}"
    result = lab.run("-H", "h0,h1", "--remote-hvdrun", lab.hvdrun, "true", hvdrun="/tmp/hvdrun")
    assert (result.returncode, result.stderr) == (0, ""), path


def test_a_command_that_only_some_hosts_have(lab):
    lab.cluster("exec", "h0", "cp", "/bin/true", "/tmp/only-here")
    says = "host h1: command not found: /tmp/only-here"
    refusal(lab, "-H", "h0,h1", "/tmp/only-here", code=2, says=says)


def test_the_folder_may_be_missing_there(lab):
    lab.cluster("exec", "h0", "mkdir", "-p", "/tmp/only-here.d")
    words = ["-H", "h0,h1", "--wdir", "/tmp/only-here.d", "true"]
    refusal(lab, *words, code=2, says="host h1: the folder of --wdir does not exist")


def test_noise_of_login_shells_does_no_harm(lab):
    noise = lab.folder / "noise"
    noise.write_text(
        f"#!/bin/sh\necho Welcome to $2\nprintf 'no newline'\nexec {shutil.which('ssh')} \"$@\"\n"
    )
    bin_folder = lab.folder / "bin"
    bin_folder.mkdir()
    shutil.move(noise, bin_folder / "ssh")
    (bin_folder / "ssh").chmod(0o755)
    result = lab.run("-H", "h0,h1", "echo", "x", PATH=f"{bin_folder}:{os.environ['PATH']}")
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(result.stdout.splitlines()) == ["[0]<stdout>:x", "[1]<stdout>:x"]
