#!/usr/bin/env python3
"""Measures allreduce between hosts against what TCP carries: benchmarks/wire.py --help.

Four hosts of test/lab, each with a link of 1 Gbit/s, and a few cases. The bound of each is what
one host must send and receive, divided by the goodput of one TCP stream between two of the hosts in
the same run (the best of its rounds, so that noise counts against us): 2 S (h - 1) / h bytes for a
vector of S bytes over h hosts, which is S for two. Jobs and streams take turns, and times are
medians over the rounds.

Needs root, the lab's packages, and a build: bazel build --config=opt //benchmarks:hvdbench
//launcher:hvdrun //bindings/c:liballring.so
"""

import argparse
import ctypes
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "test" / "lab" / "cluster"
MIB = 1 << 20
PORT = 4711
STREAM_SECONDS = 1.5
STREAM_WARMUP_SECONDS = 0.5


# --- what runs on the lab's hosts ------------------------------------------------------------


def receive_stream():
    """Prints the goodput of one stream, its first half second left out, in bytes per second."""
    with socket.create_server(("", PORT)) as server:
        print("listening", flush=True)
        connection, _ = server.accept()
    buffer = bytearray(MIB)
    arrived, begin = 0, None
    start = end = time.monotonic()
    while moved := connection.recv_into(buffer):
        end = time.monotonic()
        if begin is not None:
            arrived += moved
        elif end - start > STREAM_WARMUP_SECONDS:
            begin = end
    print(arrived / (end - begin))


def send_stream(host):
    buffer = bytes(MIB)
    with socket.create_connection((host, PORT)) as connection:
        end = time.monotonic() + STREAM_WARMUP_SECONDS + STREAM_SECONDS
        while time.monotonic() < end:
            connection.sendall(buffer)


def resnet50_sizes():
    """Elements of ResNet-50's 161 parameters, in the order in which gradients come."""
    sizes = [64 * 3 * 49, 64, 64]
    width_in = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            for filters, channels in (
                (width_in * width, width),
                (width * width * 9, width),
                (width * width * 4, width * 4),
            ):
                sizes += [filters, channels, channels]
            if block == 0:
                sizes += [width_in * width * 4, width * 4, width * 4]
            width_in = width * 4
    sizes += [1000 * 2048, 1000]
    return sizes[::-1]


def run_steps(library, warmup, iterations):
    """One rank, through the C interface: reduces a step's gradients at once; prints its seconds."""
    lib = ctypes.CDLL(library)
    lib.allring_last_error.restype = ctypes.c_char_p
    lib.allring_wait.argtypes = [ctypes.c_int64, ctypes.c_int64]
    lib.allring_release.argtypes = [ctypes.c_int64]
    lib.allring_allreduce_async.argtypes = [
        *(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int),
        *(ctypes.POINTER(ctypes.c_int64), ctypes.c_int, ctypes.c_int, ctypes.c_double),
        *(ctypes.c_double, ctypes.c_int, ctypes.POINTER(ctypes.c_int64)),
    ]
    float32, average, all_ranks, forever = 7, 0, 0, -1

    def check(code):
        if code:
            sys.exit(lib.allring_last_error().decode())

    check(lib.allring_init())
    tensors = [((ctypes.c_float * size)(), ctypes.c_int64(size)) for size in resnet50_sizes()]
    handles = [ctypes.c_int64() for _ in tensors]
    barrier = ctypes.c_int64()
    for iteration in range(warmup + iterations):
        check(lib.allring_barrier_async(all_ranks, ctypes.byref(barrier)))
        check(lib.allring_wait(barrier, forever))
        start = time.monotonic()
        for i, (buffer, count) in enumerate(tensors):
            check(
                lib.allring_allreduce_async(
                    *(b"gradient.%d" % i, buffer, buffer, 1, ctypes.byref(count), float32),
                    *(average, 1, 1, all_ranks, ctypes.byref(handles[i])),
                )
            )
        for handle in handles:
            check(lib.allring_wait(handle, forever))
            lib.allring_release(handle)
        if iteration >= warmup and lib.allring_rank() == 0:
            print(time.monotonic() - start, flush=True)
    check(lib.allring_shutdown())


# --- the lab -----------------------------------------------------------------------------------


class Lab:
    """Four hosts h0 .. h3 that share this machine's files."""

    def __init__(self, folder, programs):
        self.folder = folder
        self.programs = programs
        self.environment = {
            **os.environ,
            "CLUSTER_NAME": "wire",
            "CLUSTER_NET": "10.78",
            "CLUSTER_DIR": str(folder / "cluster"),
        }

    def cluster(self, *words):
        subprocess.run([CLUSTER, *map(str, words)], env=self.environment, check=True)

    def shape(self, words):
        """ "rate 1gbit" for all, "rate 1gbit + rate 1gbit delay 0.5ms" differently for h0."""
        everybody, _, first = words.partition("+")
        for host in range(4):
            of_host = first if first and host == 0 else everybody
            self.cluster("shape", f"h{host}", *of_host.split())

    def choose_congestion(self, name):
        for host in range(4):
            self.cluster(
                "exec", f"h{host}", "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={name}"
            )

    def start(self, host, *words):
        return subprocess.Popen(
            [CLUSTER, "exec", host, *map(str, words)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def goodput(self):
        """Bytes per second of one TCP stream from h1 to h2."""
        me = [sys.executable, __file__]
        receiver = self.start("h2", *me, "--receive")
        assert receiver.stdout.readline() == "listening\n"
        self.start("h1", *me, "--send", "h2").communicate()
        return float(receiver.communicate()[0])

    def job(self, ranks, hosts, *words):
        process = self.start("h0", self.programs / "hvdrun", "-np", ranks, "-H", hosts, *words)
        out, _ = process.communicate()
        if process.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))} failed with exit code {process.returncode}")
        return [line.partition(">:")[2] for line in out.splitlines()]

    def allreduce(self, ranks, hosts, *words):
        """Microseconds by size, in place: the median of one run."""
        report = self.folder / "report.json"
        self.job(
            *(ranks, hosts, self.programs / "hvdbench", "allreduce", "--json", report),
            *("-c", 0, "-w", 2, *words),
        )
        with open(report) as f:
            results = json.load(f)["results"]
        return {r["bytes"]: r["time_us"]["median"] for r in results if r["inplace"]}

    def step(self):
        """Microseconds of a ResNet-50 step: the median of one run."""
        library = self.programs / "liballring.so"
        out = self.job(4, "h0,h1,h2,h3", sys.executable, __file__, "--steps", library)
        return statistics.median(float(line) for line in out) * 1e6


# Ranks, hosts, arguments of hvdbench. Sizes are small where a few calls are steady already.
TO_16_MIB = ("-b", MIB, "-e", 16 * MIB, "-f", 16, "-n", 9)
OF_16_MIB = ("-b", 16 * MIB, "-e", 16 * MIB, "-n", 9)
OF_64_MIB = ("-b", 64 * MIB, "-e", 64 * MIB, "-n", 3)
FOUR = (4, "h0,h1,h2,h3")
TWO_BY_TWO = (4, "h0:2,h1:2")
CASES = {
    "core": [(*FOUR, "--layer", "core", *TO_16_MIB), (*FOUR, "--layer", "core", *OF_64_MIB)],
    "runtime": [(*FOUR, *TO_16_MIB), (*FOUR, *OF_64_MIB)],
    "bfloat16": [(*FOUR, "--layer", "core", "-d", "bfloat16", *OF_16_MIB)],
    "2x2": [(*TWO_BY_TWO, "--layer", "core", *OF_16_MIB)],
    "2x2 runtime": [(*TWO_BY_TWO, *OF_16_MIB)],
    "2x2 bfloat16": [(*TWO_BY_TWO, "--layer", "core", "-d", "bfloat16", *OF_16_MIB)],
    "resnet50": [],
}


def measure_cases(lab, names):
    """{(case, bytes): microseconds} of one round."""
    times = {}
    for name in names:
        measured = {}
        for run in CASES[name]:
            measured |= lab.allreduce(*run)
        if name == "resnet50":
            measured = {4 * sum(resnet50_sizes()): lab.step()}
        times |= {(name, size): us for size, us in measured.items()}
    return times


def bound_us(case, size, goodput):
    hosts = 2 if case.startswith("2x2") else 4
    return 2 * size * (hosts - 1) / hosts / goodput * 1e6


def print_table(title, goodput, rounds):
    print(f"\n{title}: one TCP stream carries {goodput / 1e6:.1f} MB/s")
    print(f"{'case':12} {'MiB':>7} {'bound ms':>9} {'ms':>9} {'% of bound':>11}  worst..best round")
    for case, size in rounds[0]:
        times = sorted(measured[case, size] for measured in rounds)
        bound, us = bound_us(case, size, goodput), statistics.median(times)
        print(
            f"{case:12} {size / MIB:7.1f} {bound / 1e3:9.2f} {us / 1e3:9.2f}"
            f" {100 * bound / us:11.1f}"
            f"  {100 * bound / times[-1]:.1f}..{100 * bound / times[0]:.1f}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--programs",
        type=pathlib.Path,
        action="append",
        metavar="FOLDER",
        help="with hvdrun, hvdbench and liballring.so; more than one take turns "
        "(default: what bazel has built)",
    )
    parser.add_argument("--cases", default=",".join(CASES), help="of " + ",".join(CASES))
    parser.add_argument(
        "--shapes",
        default="rate 1gbit",
        help="of the links, as for 'cluster shape', comma separated; after a +, the first host's",
    )
    parser.add_argument(
        "--congestion",
        help="the hosts' TCP congestion control, of the machine's tcp_allowed_congestion_control",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--receive", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--send", help=argparse.SUPPRESS)
    parser.add_argument("--steps", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.receive:
        return receive_stream()
    if arguments.send:
        return send_stream(arguments.send)
    if arguments.steps:
        return run_steps(arguments.steps, 1, 3)

    cases = arguments.cases.split(",")
    if unknown := set(cases) - CASES.keys():
        sys.exit(f"no such case: {', '.join(unknown)}; there are {', '.join(CASES)}")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:  # /tmp is each host's own
        folder = pathlib.Path(name)
        programs = arguments.programs or [folder]
        if not arguments.programs:
            for built in ("launcher/hvdrun", "benchmarks/hvdbench", "bindings/c/liballring.so"):
                shutil.copy(ROOT / "bazel-bin" / built, folder)
        labs = [Lab(folder, p.resolve()) for p in programs]
        labs[0].cluster("up", 4)
        try:
            if arguments.congestion:
                labs[0].choose_congestion(arguments.congestion)
            for shape in arguments.shapes.split(","):
                labs[0].shape(shape)
                rounds = {lab: [] for lab in labs}
                goodput = 0
                for _ in range(arguments.rounds):
                    for lab in labs:
                        goodput = max(goodput, lab.goodput())
                        rounds[lab].append(measure_cases(lab, cases))
                for lab in labs:
                    print_table(f"{shape}, {lab.programs}", goodput, rounds[lab])
        finally:
            labs[0].cluster("down")


if __name__ == "__main__":
    main()
