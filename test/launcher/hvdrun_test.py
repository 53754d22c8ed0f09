"""The real hvdrun on this host: what ranks get, what users see, how jobs end, what is left.

Usage: hvdrun_test.py PATH_OF_HVDRUN PATH_OF_STORE_PROBE [unittest arguments]
"""

import contextlib
import hashlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import uuid

HVDRUN = ""
STORE_PROBE = ""
PYTHON = sys.executable or "/usr/bin/python3"
TIMEOUT_S = 60

# Of every Python rank. mark() says that the rank has come to a point, and where its store is.
PREAMBLE = """import os, sys, time, signal, subprocess
def mark(folder, name):
    unfinished = f'{folder}/.{name}{os.getpid()}'
    with open(unfinished, 'w') as f: f.write(os.environ['ALLRING_STORE'])
    os.rename(unfinished, f"{folder}/{name}.{os.environ['RANK']}")
"""


def processes_with(token):
    """Living processes that have `token` in their environment or arguments."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", "rb") as f:
                if f.read().rpartition(b")")[2].split()[0] in (b"Z", b"X"):
                    continue
            for name in ("environ", "cmdline"):
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    if token.encode() in f.read():
                        found.append(int(pid))
                        break
    return found


def wait_until(condition, timeout_s=20):
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class Job(unittest.TestCase):
    """Starts jobs whose every process carries a token, and checks that none is left."""

    def setUp(self):
        self.token = "hvdrun-test-" + uuid.uuid4().hex
        self.environment = {**os.environ, "HVDRUN_TEST_TOKEN": self.token}
        for name in [n for n in self.environment if n.startswith(("HVDRUN_N", "OMP_", "PYTHON"))]:
            del self.environment[name]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def tearDown(self):
        gone = wait_until(lambda: not processes_with(self.token))
        left = processes_with(self.token)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.assertTrue(gone, f"processes are left: {left}")
        with open("/proc/net/unix") as f:
            sockets = f.read()
        for name in os.listdir(self.folder):
            if name.startswith("up."):
                with open(os.path.join(self.folder, name)) as f:
                    store = f.read()
                self.assertTrue(store.startswith("unix:@"))
                self.assertNotIn(store[len("unix:") :], sockets)

    def start(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("env", self.environment)
        return subprocess.Popen([HVDRUN, *words], **options)

    def run_job(self, *words, input=None, **options):
        if input is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*words, **options)
        try:
            out, err = process.communicate(input, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def script(self, text):
        """A Python program as the words that run it."""
        return [PYTHON, "-c", PREAMBLE + textwrap.dedent(text)]

    def marks(self, name):
        """How often ranks have said that they have come to a point, see MARK."""
        return len([f for f in os.listdir(self.folder) if f.startswith(name + ".")])

    def mark(self, name):
        return f"mark({self.folder!r}, {name!r})"


class WhatRanksGetTest(Job):
    def test_arguments_and_environment_are_equal_byte_for_byte(self):
        dump = self.script("""
            with open(sys.argv[1] + '.' + os.environ['RANK'], 'wb') as f:
                f.write(b'\\0'.join(map(os.fsencode, sys.argv)) + b'\\0\\0')
                f.write(b'\\0'.join(k + b'=' + v for k, v in sorted(os.environb.items())))
            """)
        arguments = [
            b"",
            b" ",
            b"a b",
            b"'",
            b'"',
            b"\\",
            b"new\nline",
            b"$HOME `id` *",
            b"\xff\xfe",
            b"--np",
            b"7",
            b"--",
            b"-x",
            b"y" * 100_000,
        ]
        values = {
            b"SPACES": b"a  b ",
            b"QUOTES": b"'\"`\\",
            b"NEWLINE": b"a\nb\n",
            b"EMPTY": b"",
            b"BYTES": b"\xff\xc3\x28",
            b"dotted.name": b"1",
            b"EQUALS": b"a=b=c",
            b"BASH_FUNC_f%%": b"() { :; }",
            b"LONG": b"z" * 130_000,
        }
        # The kernel takes at most 128 KiB in one string, so a megabyte comes as several.
        values.update({b"LONG%d" % i: bytes([65 + i]) * 120_000 for i in range(9)})
        environment = {
            **{os.fsencode(k): os.fsencode(v) for k, v in self.environment.items()},
            **values,
        }
        target = os.path.join(self.folder, "dump")
        result = self.run_job("-np", "2", *dump, target, *arguments, env=environment)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        for rank in "01":
            with open(f"{target}.{rank}", "rb") as f:
                whole = f.read()
            expected = b"\0".join([b"-c", os.fsencode(target), *arguments]) + b"\0\0"
            self.assertTrue(whole.startswith(expected))
            got = dict(e.split(b"=", 1) for e in whole[len(expected) :].split(b"\0"))
            for name, value in environment.items():
                self.assertEqual(got.get(name), value, name)

    def test_variables(self):
        result = self.run_job(
            "-np",
            "3",
            "-x",
            "GIVEN=a b",
            "-x",
            "HVDRUN_TEST_TOKEN",
            "-x",
            "MASTER_PORT=77",
            "--start-timeout",
            "12.5",
            "--network-interfaces",
            "lo",
            "env",
        )
        self.assertEqual(result.returncode, 0)
        lines = result.stdout.decode().splitlines()
        for rank in range(3):
            prefix = f"[{rank}]<stdout>:"
            got = dict(
                each[len(prefix) :].split("=", 1) for each in lines if each.startswith(prefix)
            )
            for start in ("ALLRING_", "HOROVOD_"):
                self.assertEqual(got[start + "RANK"], str(rank))
                self.assertEqual(got[start + "SIZE"], "3")
                self.assertEqual(got[start + "LOCAL_RANK"], str(rank))
                self.assertEqual(got[start + "LOCAL_SIZE"], "3")
                self.assertEqual(got[start + "CROSS_RANK"], "0")
                self.assertEqual(got[start + "CROSS_SIZE"], "1")
                self.assertEqual(got[start + "HOSTNAME"], os.uname().nodename)
            for name, value in {
                "RANK": str(rank),
                "WORLD_SIZE": "3",
                "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": "3",
                "GROUP_RANK": "0",
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": "77",
                "ALLRING_SINGLE_HOST": "1",
                "PYTHONUNBUFFERED": "1",
                "GIVEN": "a b",
                "ALLRING_START_TIMEOUT": "12.5",
                "ALLRING_NETWORK_INTERFACES": "lo",
                "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // 3)),
            }.items():
                self.assertEqual(got[name], value, name)
            self.assertRegex(got["ALLRING_JOB_ID"], "^[a-z0-9-]+$")
            self.assertRegex(
                got["ALLRING_STORE"], f"^unix:@allring-{got['ALLRING_JOB_ID']}-[0-9]+$"
            )
            self.assertNotIn("GRPC_ENABLE_FORK_SUPPORT", got)

    def test_threads_are_left_alone_where_they_are_set(self):
        result = self.run_job(
            "-np",
            "2",
            "sh",
            "-c",
            "echo $OMP_NUM_THREADS",
            env={**self.environment, "OMP_NUM_THREADS": "5"},
        )
        self.assertEqual(sorted(result.stdout.splitlines()), [b"[0]<stdout>:5", b"[1]<stdout>:5"])

    def test_the_secret_is_in_no_listing(self):
        # Ranks read it once; while they run, nothing that `ps` can show holds it.
        result = self.run_job(
            "-np",
            "2",
            *self.script("""
            secret = open(os.environ['ALLRING_SECRET_FILE'], 'rb').read()
            assert len(secret) == 32
            for pid in filter(str.isdigit, os.listdir('/proc')):
                for name in ('environ', 'cmdline'):
                    try:
                        seen = open(f'/proc/{pid}/{name}', 'rb').read()
                    except OSError:
                        continue
                    assert secret not in seen and secret.hex().encode() not in seen
            print(secret.hex())
            """),
        )
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        secrets = {line.split(b":")[1] for line in result.stdout.splitlines()}
        self.assertEqual(len(secrets), 1)

    def test_folder(self):
        result = self.run_job("-np", "1", "--wdir", self.folder, "pwd")
        self.assertEqual(result.stdout, b"[0]<stdout>:" + os.fsencode(self.folder) + b"\n")
        result = self.run_job("-np", "1", "pwd", cwd=self.folder)
        self.assertEqual(result.stdout, b"[0]<stdout>:" + os.fsencode(self.folder) + b"\n")

    def test_descriptors_and_signals_are_as_after_a_login(self):
        result = self.run_job(
            "-np",
            "2",
            *self.script("""
            assert sorted(map(int, os.listdir('/proc/self/fd')))[:3] == [0, 1, 2]
            assert len(os.listdir('/proc/self/fd')) == 4  # and the folder itself
            status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines())
            assert int(status['SigBlk'], 16) == 0
            assert os.getpgid(0) == os.getpid()
            """),
        )
        self.assertEqual((result.returncode, result.stderr), (0, b""))

    def test_stdin_reaches_rank_0(self):
        data = os.urandom(3_000_000)
        result = self.run_job(
            "-np",
            "2",
            *self.script("""
            import hashlib
            print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())
            """),
            input=data,
        )
        empty = hashlib.sha256(b"").hexdigest()
        self.assertEqual(
            sorted(result.stdout.decode().splitlines()),
            ["[0]<stdout>:" + hashlib.sha256(data).hexdigest(), "[1]<stdout>:" + empty],
        )

    def test_stdin_that_nobody_reads_holds_nothing_up(self):
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, write_end)
        with os.fdopen(read_end) as stdin:
            result = self.run_job("-np", "2", "true", stdin=stdin)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(self.run_job("-np", "2", "true", input=b"x" * 10_000_000).returncode, 0)

    def test_closed_standard_descriptors(self):
        process = subprocess.run(
            ["sh", "-c", f'exec "{HVDRUN}" -np 2 true <&- >&- 2>&-'],
            timeout=TIMEOUT_S,
            env=self.environment,
        )
        self.assertEqual(process.returncode, 0)


class OutputTest(Job):
    def test_much_output_arrives_whole(self):
        # Each line has its rank, number, bytes that are no UTF-8, and UTF-8 cut anywhere by pipes.
        program = self.script("""
            rank = int(os.environ['RANK'])
            def line(i):
                head = b'%d %d ' % (rank, i)
                return (head + '\\u00e4\\u20ac'.encode() * 40 + b'\\x8a\\xff' * 100)[:200]
            lines = b'\\n'.join(map(line, range(10_000)))
            for i in range(0, len(lines), 977 + rank):
                sys.stdout.buffer.write(lines[i:i + 977 + rank])
                if i % 3 == 0: sys.stdout.flush()
            """)
        result = self.run_job("-np", "8", *program)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        got = {rank: [] for rank in range(8)}
        lines = result.stdout.split(b"\n")
        self.assertEqual(lines.pop(), b"")
        for line in lines:
            prefix, _, text = line.partition(b"]<stdout>:")
            got[int(prefix[1:])].append(text)
        for rank in range(8):
            expected = [
                (b"%d %d " % (rank, i) + "\u00e4\u20ac".encode() * 40 + b"\x8a\xff" * 100)[:200]
                for i in range(10_000)
            ]
            self.assertEqual(got[rank], expected)

    def test_streams_stay_apart(self):
        result = self.run_job(
            "-np",
            "1",
            "sh",
            "-c",
            "echo out; echo err >&2; printf part; printf '\\r' >&2; printf 'a\\0b\\n' >&2",
        )
        self.assertEqual(result.stdout, b"[0]<stdout>:out\n[0]<stdout>:part\n")
        self.assertEqual(result.stderr, b"[0]<stderr>:err\n[0]<stderr>:\ra\0b\n")

    def test_nothing_is_lost_when_a_rank_is_killed(self):
        result = self.run_job(
            "-np",
            "1",
            *self.script("""
            os.write(1, b'x' * 60_000 + b'\\n' + b'last')
            os.kill(os.getpid(), signal.SIGKILL)
            """),
        )
        self.assertEqual(result.returncode, 137)
        self.assertEqual(result.stdout, b"[0]<stdout>:" + b"x" * 60_000 + b"\n[0]<stdout>:last\n")

    def test_files(self):
        folder = os.path.join(self.folder, "a/b")
        result = self.run_job(
            "-np",
            "11",
            "--output-filename",
            folder,
            "sh",
            "-c",
            'printf "out $RANK\\rx"; echo err >&2',
        )
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"[10]<stdout>:out 10\rx\n", result.stdout)
        with open(folder + "/rank.10/stdout", "rb") as f:
            self.assertEqual(f.read(), b"out 10\rx")
        with open(folder + "/rank.03/stderr", "rb") as f:
            self.assertEqual(f.read(), b"err\n")

    def test_timestamps(self):
        result = self.run_job("-np", "1", "--timestamp", "echo", "hi")
        self.assertRegex(
            result.stdout, rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\[0\]<stdout>:hi\n$"
        )

    def test_a_reader_that_has_gone_ends_the_job(self):
        process = self.start("-np", "2", "yes")
        process.stdout.read(10)
        process.stdout.close()
        process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(TIMEOUT_S), 141)

    def test_a_reader_that_waits_holds_only_the_output_up(self):
        process = self.start(
            "-np",
            "2",
            *self.script(f"""
            {self.mark("up")}
            while True: os.write(1, b'y' * 1000 + b'\\n')
            """),
        )
        self.assertTrue(wait_until(lambda: self.marks("up") == 2))
        time.sleep(0.5)  # lets pipes and windows fill; the test holds without it too
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        self.assertTrue(wait_until(lambda: process.poll() is not None))
        self.assertEqual(process.returncode, 130)
        process.communicate()

    def test_terminal_shows_progress_live(self):
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        gate = os.path.join(self.folder, "gate")
        os.mkfifo(gate)
        process = self.start(
            "-np",
            "1",
            *self.script(f"""
            os.write(2, b'\\r 10%|#')
            os.write(2, b'\\r 20%|##')
            open({gate!r}).read()
            os.write(2, b'\\r100%|####\\n')
            """),
            stdout=terminal,
            stderr=terminal,
            env={**self.environment, "TERM": "xterm"},
        )
        os.close(terminal)
        seen = b""

        def shows(text):
            nonlocal seen
            if select.select([controller], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    seen += os.read(controller, 4096)
            return text in seen

        self.assertTrue(wait_until(lambda: shows(b"[0]<stderr>: 20%|##")), seen)
        with open(gate, "w"):
            pass
        self.assertTrue(wait_until(lambda: shows(b"[0]<stderr>:100%|####\r\n")), seen)
        self.assertEqual(process.wait(TIMEOUT_S), 0)


class EndTest(Job):
    def test_exit_codes(self):
        self.assertEqual(self.run_job("-np", "2", "true").returncode, 0)
        self.assertEqual(self.run_job("-np", "1", "sh", "-c", "exit 3").returncode, 3)
        self.assertEqual(self.run_job("-np", "1", "sh", "-c", "kill -TERM $$").returncode, 143)

    def test_exit_code_of_the_rank_that_failed_first(self):
        result = self.run_job(
            "-np",
            "3",
            *self.script("""
            rank = os.environ['RANK']
            if rank == '1':
                print('why', file=sys.stderr)
                sys.exit(42)
            def end(*_):
                print('ends', rank)
                sys.exit(5)
            signal.signal(signal.SIGTERM, end)
            time.sleep(100)
            """),
        )
        self.assertEqual(result.returncode, 42)
        self.assertEqual(
            sorted(result.stdout.splitlines()), [b"[0]<stdout>:ends 0", b"[2]<stdout>:ends 2"]
        )
        host = os.uname().nodename
        self.assertIn(
            f"hvdrun: rank 1 on host {host} failed first: exit code 42\n"
            "hvdrun: its last lines were:\n    why\n"
            "hvdrun: ranks 0 and 2: exit code 5 after being asked to end\n",
            result.stderr.decode(),
        )

    def test_survivors_may_report_what_they_saw(self):
        result = self.run_job(
            "-np",
            "2",
            *self.script("""
            if os.environ['RANK'] == '1':
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.7)
            print('peer lost')
            sys.exit(1)
            """),
        )
        self.assertEqual(result.returncode, 137)
        self.assertEqual(result.stdout, b"[0]<stdout>:peer lost\n")
        self.assertIn(b"rank 1 on host", result.stderr)
        self.assertIn(b"killed by signal 9 (Killed)", result.stderr)
        self.assertIn(b"hvdrun: rank 0: exit code 1\n", result.stderr)

    def test_ranks_that_do_not_end_are_killed(self):
        start = time.monotonic()
        result = self.run_job(
            "-np",
            "2",
            "--grace-secs",
            "0.5",
            *self.script("""
            if os.environ['RANK'] == '1':
                sys.exit(7)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            subprocess.Popen(['sleep', '100'])
            os.kill(os.getpid(), signal.SIGSTOP)
            """),
        )
        self.assertEqual(result.returncode, 7)
        self.assertLess(time.monotonic() - start, 20)
        self.assertIn(
            b"rank 0: killed by signal 9 (Killed) after being asked to end", result.stderr
        )

    def test_what_ranks_leave_behind_is_ended(self):
        result = self.run_job(
            "-np",
            "2",
            *self.script("""
            subprocess.Popen(['sleep', '1000'], start_new_session=True)
            subprocess.Popen(['setsid', 'sh', '-c', 'sleep 1000 & sleep 1000'],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            """),
        )
        self.assertEqual(result.returncode, 0)
        self.assertEqual(processes_with(self.token), [])

    def sleeper(self, extra=""):
        return self.script(f"""
            subprocess.Popen(['setsid', 'sleep', '1000'])
            if os.fork() == 0:
                if os.fork() == 0:
                    {self.mark("grandchild")}
                    time.sleep(1000)
                os._exit(0)
            {extra}
            {self.mark("up")}
            time.sleep(1000)
            """)

    def up(self):
        return wait_until(lambda: self.marks("up") == 2 and self.marks("grandchild") == 2)

    def test_interrupt(self):
        process = self.start("-np", "2", *self.sleeper())
        self.assertTrue(self.up())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"KeyboardInterrupt", err)
        self.assertEqual(processes_with(self.token), [])

    def test_second_interrupt_kills(self):
        process = self.start(
            "-np",
            "2",
            "--grace-secs",
            "1000",
            *self.sleeper("signal.signal(signal.SIGINT, signal.SIG_IGN)"),
        )
        self.assertTrue(self.up())
        process.send_signal(signal.SIGINT)
        self.assertIn(b"ending the job", process.stderr.readline())
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)

    def test_terminate_and_hang_up(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                for name in os.listdir(self.folder):
                    os.unlink(os.path.join(self.folder, name))
                process = self.start("-np", "2", *self.sleeper())
                self.assertTrue(self.up())
                process.send_signal(number)
                process.communicate(timeout=TIMEOUT_S)
                self.assertEqual(process.returncode, 128 + number)

    def test_hang_up_is_ignored_under_nohup(self):
        process = subprocess.Popen(
            [
                "nohup",
                HVDRUN,
                "-np",
                "1",
                *self.script(f"""
            {self.mark("up")}
            while not os.path.exists({self.folder!r} + '/go'): time.sleep(0.02)
            """),
            ],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.assertTrue(wait_until(lambda: self.marks("up") == 1))
        process.send_signal(signal.SIGHUP)
        open(self.folder + "/go", "w").close()
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0)

    def test_user_signals_reach_ranks(self):
        process = self.start(
            "-np",
            "2",
            *self.script(f"""
            def got(*_):
                print('usr1')
                sys.exit(0)
            signal.signal(signal.SIGUSR1, got)
            {self.mark("up")}
            time.sleep(1000)
            """),
        )
        self.assertTrue(wait_until(lambda: self.marks("up") == 2))
        process.send_signal(signal.SIGUSR1)
        out, _ = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(sorted(out.splitlines()), [b"[0]<stdout>:usr1", b"[1]<stdout>:usr1"])

    def test_stop_and_continue(self):
        process = self.start(
            "-np",
            "1",
            *self.script(f"""
            {self.mark("up")}
            while not os.path.exists({self.folder!r} + '/go'): time.sleep(0.02)
            """),
        )

        def state(pid):
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rpartition(")")[2].split()[0]

        self.assertTrue(wait_until(lambda: self.marks("up") == 1))
        (rank,) = [
            p
            for p in processes_with(self.token)
            if b"ALLRING_RANK=0" in open(f"/proc/{p}/environ", "rb").read()
        ]
        process.send_signal(signal.SIGTSTP)
        self.assertTrue(wait_until(lambda: state(process.pid) == "T" and state(rank) == "T"))
        process.send_signal(signal.SIGCONT)
        self.assertTrue(wait_until(lambda: state(rank) != "T"))
        open(self.folder + "/go", "w").close()
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0)

    def test_what_was_there_before_is_left_alone(self):
        result = subprocess.run(
            ["bash", "-c", f'exec "{HVDRUN}" -np 2 echo hi > >(sleep 1; cat)'],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=TIMEOUT_S,
        )
        self.assertEqual(result.returncode, 0)
        self.assertEqual(len(result.stdout.splitlines()), 2)

    def test_ends_are_seen_although_the_parent_ignores_children(self):
        process = self.start(
            "-np",
            "2",
            "sh",
            "-c",
            "exit 3",
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        )
        process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 3)

    def test_killing_hvdrun_leaves_nothing(self):
        process = self.start("-np", "2", *self.sleeper())
        self.assertTrue(self.up())
        process.kill()
        process.wait()
        # The pipes end with the last process that holds them.
        process.communicate(timeout=TIMEOUT_S)
        self.assertTrue(wait_until(lambda: not processes_with(self.token), 5))

    def test_killing_the_agent_ends_the_job(self):
        process = self.start("-np", "2", *self.sleeper())
        self.assertTrue(self.up())
        agents = [
            p
            for p in processes_with(self.token)
            if open(f"/proc/{p}/cmdline", "rb").read().endswith(b"\0--agent\0")
        ]
        self.assertEqual(len(agents), 1)
        os.kill(agents[0], signal.SIGKILL)
        _, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 137)
        self.assertIn(b"is lost: its agent ended with signal 9 (Killed)", err)
        self.assertEqual(processes_with(self.token), [])

    def test_many_ranks(self):
        result = self.run_job("-np", "64", "sh", "-c", "echo $RANK $LOCAL_WORLD_SIZE")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(
            sorted(result.stdout.decode().splitlines()),
            sorted(f"[{r}]<stdout>:{r} 64" for r in range(64)),
        )

    def test_several_jobs_at_once(self):
        jobs = [self.start("-np", "2", "sh", "-c", "echo $MASTER_PORT") for _ in range(4)]
        for job in jobs:
            job.communicate(timeout=TIMEOUT_S)
            self.assertEqual(job.returncode, 0)


class StoreTest(Job):
    def test_ranks_meet_through_their_agent(self):
        for ranks, size in ((1, 0), (4, 0), (16, 100_000)):
            with self.subTest(ranks=ranks):
                result = self.run_job("-np", str(ranks), STORE_PROBE, str(size))
                self.assertEqual((result.returncode, result.stderr), (0, b""))
                total = ranks * (ranks - 1) // 2
                self.assertEqual(
                    sorted(result.stdout.decode().splitlines()),
                    sorted(f"[{r}]<stdout>:{total}" for r in range(ranks)),
                )

    def test_large_values(self):
        for size in (1 << 20, 3_000_000, 7_000_000, 20_000_000):
            with self.subTest(size=size):
                result = self.run_job("-np", "2", STORE_PROBE, str(size))
                self.assertEqual((result.returncode, result.stderr), (0, b""))

    def test_a_stranger_is_refused(self):
        result = self.run_job(
            "-np",
            "1",
            "sh",
            "-c",
            f"printf wrong > {self.folder}/secret; "
            f"ALLRING_SECRET_FILE={self.folder}/secret exec {STORE_PROBE} 0 1",
        )
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout, b"")


class BadInputTest(Job):
    def refuse(self, *words, says):
        result = self.run_job(*words)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, b"")
        self.assertRegex(result.stderr.decode(), r"\Ahvdrun: [^\n]*\n\Z")
        self.assertIn(says, result.stderr.decode())

    def test_each_is_one_line_that_says_what_to_do(self):
        hostfile = os.path.join(self.folder, "hosts")
        with open(hostfile, "w") as f:
            f.write("# hosts\nlocalhost slots=2\n\nlocalhost slots=two\n")
        not_executable = os.path.join(self.folder, "train.py")
        open(not_executable, "w").close()
        no_interpreter = os.path.join(self.folder, "plain")
        with open(no_interpreter, "w") as f:
            f.write("echo hi\n")
        os.chmod(no_interpreter, 0o755)
        lost_interpreter = os.path.join(self.folder, "lost")
        with open(lost_interpreter, "w") as f:
            f.write("#!/no/such/python\n")
        os.chmod(lost_interpreter, 0o755)
        for words, says in [
            (["-np", "2", "no-such-command"], "command not found: no-such-command"),
            (["-np", "2", "./no/such"], "command not found: ./no/such"),
            (["-np", "2", not_executable], "run it as: python " + not_executable),
            (["-np", "2", no_interpreter], "begins with #!"),
            (["-np", "2", lost_interpreter], "#! line names does not exist"),
            (["-np", "2", "--wdir", "/no/such", "true"], "--wdir"),
            (["-np", "2"], "no command was given"),
            (["true"], "-np N"),
            (["-np", "0", "true"], "num-proc"),
            (["-np", "two", "true"], "num-proc"),
            (["-np"], "needs a value"),
            (["--no-such-option", "true"], "--no-such-option"),
            (["-np", "3", "-H", "localhost:2", "true"], "--oversubscribe"),
            (["-H", "localhost:x", "true"], "bad slot count"),
            (["-H", "localhost:0", "true"], "bad slot count"),
            (["-H", "-oProxyCommand=x:2", "true"], "bad host"),
            (["--hostfile", hostfile, "true"], hostfile + ":4: bad slot count"),
            (["--hostfile", "/no/such", "true"], "/no/such"),
            (["-H", "no-such-host.invalid:2", "true"], "no-such-host.invalid"),
            (["-np", "1", "-x", "=v", "true"], "-x"),
            (["-np", "1", "--bind-to", "core", "true"], "--bind-to"),
            (["-np", "1", "--ssh-args", "'open", "true"], "--ssh-args"),
            (["-np", "1", "--output-filename", "/proc/no", "true"], "--output-filename"),
        ]:
            with self.subTest(words=words):
                self.refuse(*words, says=says)

    def test_a_variable_for_each_option(self):
        self.environment["HVDRUN_NUM_PROC"] = "2"
        self.assertEqual(len(self.run_job("echo").stdout.splitlines()), 2)
        self.assertEqual(len(self.run_job("-np", "1", "echo").stdout.splitlines()), 1)
        self.environment["HVDRUN_NUM_PROC"] = "x"
        self.refuse("true", says="num-proc")

    def test_what_other_launchers_accept(self):
        result = self.run_job(
            "-np",
            "1",
            "--allow-run-as-root",
            "-bind-to",
            "none",
            "-map-by",
            "slot",
            "--gloo",
            "--mpi",
            "-mca",
            "pml",
            "ob1",
            "-H",
            "localhost:1",
            "--",
            "true",
        )
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b"", b""))

    def test_dry_run(self):
        result = self.run_job(
            "-H", "localhost:1,b:2,c:1", "-np", "4", "--dry-run", "python", "t.py"
        )
        self.assertEqual(result.returncode, 0)
        self.assertEqual(
            result.stdout.decode(),
            "rank 0: localhost, local 0 of 1, cross 0 of 3\n"
            "rank 1: b, local 0 of 2, cross 1 of 3\n"
            "rank 2: b, local 1 of 2, cross 0 of 1\n"
            "rank 3: c, local 0 of 1, cross 2 of 3\n"
            "command: python t.py\n",
        )

    def test_version_and_help(self):
        self.assertTrue(re.match(rb"hvdrun \d+\.\d+", self.run_job("--version").stdout))
        self.assertIn(b"--num-proc", self.run_job("--help").stdout)


if __name__ == "__main__":
    HVDRUN = os.path.abspath(sys.argv.pop(1))
    STORE_PROBE = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
