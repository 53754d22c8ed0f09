#!/usr/bin/env python3
"""Compares Allring with Open MPI, as installed and at its best tuning, and prints ratio and floor.

Every number is a ratio of medians that hvdbench --against openmpi measures with both on the same
ranks in turns: Open MPI's time over ours. Each case runs several times; the middle ratio counts,
and the range is printed beside it.

    benchmarks/compare_openmpi.py                      # all cases, some minutes
    benchmarks/compare_openmpi.py --only "4 ranks"     # cases whose name holds these words
    benchmarks/compare_openmpi.py --sweep              # all sizes between 4 B and 64 MiB

"Best tuning" is the ring for allreduce and a malloc that keeps its memory; see BEST below.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GIB4 = str(4 << 30)
# Open MPI's own choice loses to the ring from 1 MiB up, and above 32 MiB its temporary memory is
# mapped and faulted in anew on every call.
BEST = {
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
    "OMPI_MCA_coll_tuned_allreduce_algorithm": "4",
    "MALLOC_MMAP_THRESHOLD_": GIB4,
    "MALLOC_TRIM_THRESHOLD_": GIB4,
}
INSTALLED = {}
SIZES = {"8 B": "8", "64 KiB": "64K", "1 MiB": "1M", "16 MiB": "16M", "64 MiB": "64M"}


class Case:
    """One ratio: how to measure it, and what it must reach."""

    def __init__(self, name, floor, ranks, tuning, arguments, mode=None):
        self.name = name
        self.floor = floor
        self.ranks = ranks
        self.tuning = tuning
        self.arguments = arguments
        self.mode = mode  # of a step; else the ratio in place, where there is one


# Floors by size; a row of the table each.
ALLREDUCE = (
    (2, "private", INSTALLED, {"8 B": 1.5, "64 KiB": 2, "1 MiB": 1.4, "16 MiB": 1.4, "64 MiB": 3}),
    (2, "private", BEST, {"64 KiB": 1.7, "1 MiB": 1.3, "16 MiB": 1.2, "64 MiB": 1.6}),
    (2, "arena", INSTALLED, {"64 KiB": 4, "1 MiB": 4, "16 MiB": 4, "64 MiB": 7}),
    (2, "arena", BEST, {"64 KiB": 3.5, "1 MiB": 3.5, "16 MiB": 3.5, "64 MiB": 3.5}),
    (4, "private", INSTALLED, {"8 B": 1.5, "1 MiB": 1.7, "16 MiB": 1.8, "64 MiB": 3}),
)


def all_cases(layer):
    """The table, in its order."""
    for ranks, buffers, tuning, floors in ALLREDUCE:
        for size, floor in floors.items():
            yield Case(
                f"{ranks} ranks, {buffers}, allreduce {size}, "
                + ("best tuning" if tuning else "as installed"),
                floor,
                ranks,
                tuning,
                ["allreduce", "--layer", layer, "--buffers", buffers]
                + ["-b", SIZES[size], "-e", SIZES[size]],
            )
    for collective in ("allgather", "broadcast", "alltoall", "reduce_scatter"):
        yield Case(
            f"2 ranks, private, {collective} 64 MiB, as installed",
            2.5 if collective == "reduce_scatter" else 1.2,
            2,
            INSTALLED,
            [collective, "--layer", layer, "-b", "64M", "-e", "64M"],
        )
    for buffers, floor in (("private", 1.5), ("arena", 3)):
        yield Case(
            f"2 ranks, {buffers}, ResNet-50 step, best of MPI's modes",
            floor,
            2,
            INSTALLED,
            ["step", "--model", "resnet50", "--buffers", buffers],
            mode="best",
        )
    for mode, words, floor in (
        ("tensor by tensor", "tensor by tensor", 2.5),
        ("bucket", "best bucket", 1.4),
    ):
        yield Case(
            f"2 ranks, private, 1000 x 4 KiB, {words}",
            floor,
            2,
            INSTALLED,
            ["step", "--model", "many-small"],
            mode=mode,
        )


def find(name, *places):
    """A built file: on PATH, or in Bazel's tree."""
    for place in places:
        if (ROOT / place / name).exists():
            return str(ROOT / place / name)
    return shutil.which(name)


class Bench:
    def __init__(self, hvdbench, plugin):
        self.hvdbench = hvdbench
        self.environment = dict(
            os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"
        )
        if plugin:
            self.environment["ALLRING_MPI_LIBRARY"] = plugin

    def run(self, ranks, tuning, arguments):
        """One run of hvdbench under mpirun; its JSON."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "results.json"
            command = ["mpirun", "-np", str(ranks)]
            if ranks > len(os.sched_getaffinity(0)):
                command.append("--oversubscribe")
            command += [self.hvdbench, *arguments, "--against", "openmpi", "--json", str(file)]
            child = subprocess.run(
                command,
                env={**self.environment, **tuning},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=600,
            )
            if child.returncode != 0:
                lines = child.stderr.strip().splitlines()
                mine = [line for line in lines if line.startswith("hvdbench:")]
                raise RuntimeError((mine or lines or ["no message"])[0])
            return json.loads(file.read_text())

    def ratio(self, case):
        """The ratio of one run, and how fast a peer's memory was read in it."""
        document = self.run(case.ranks, case.tuning, case.arguments)
        ratios = document["ratios"]
        if case.mode == "bucket":
            values = [r["ratio"] for r in ratios if re.match("bucket", r["mode"])]
            value = min(values)
        elif case.mode:
            value = next(r["ratio"] for r in ratios if r["mode"] == case.mode)
        else:
            value = ratios[-1]["ratio"]  # in place comes last, where there is such a form
        return value, document.get("peer_memory_GBps", 0)


def compare(bench, cases, repeats):
    """Prints a line per case; gives them as dictionaries."""
    print(f"{'case':58} {'floor':>6} {'ratio':>7}  {'range':>13}  peer memory GB/s")
    lines = []
    for case in cases:
        try:
            runs = [bench.ratio(case) for _ in range(repeats)]
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"{case.name:58} {case.floor:6.1f}  not measured: {error}", flush=True)
            lines.append({"case": case.name, "floor": case.floor, "error": str(error)})
            continue
        values = [value for value, _ in runs]
        middle = statistics.median(values)
        read = statistics.median(rate for _, rate in runs)
        verdict = "" if middle >= case.floor else "  below its floor"
        print(
            f"{case.name:58} {case.floor:6.1f} {middle:7.2f}  "
            f"{min(values):6.2f}-{max(values):6.2f}  {read:6.1f}{verdict}",
            flush=True,
        )
        lines.append(
            {"case": case.name, "floor": case.floor, "ratios": values, "ratio": middle,
             "peer_memory_GBps": read}
        )  # fmt: skip
    return lines


def sweep(bench, ranks, layer, repeats):
    """Every size from 4 B to 64 MiB against Open MPI as installed; prints those slower than it."""
    arguments = ["allreduce", "--layer", layer, "-b", "4", "-e", "64M", "-f", "2"]
    by_size = {}
    for _ in range(repeats):
        for ratio in bench.run(ranks, INSTALLED, arguments)["ratios"]:
            by_size.setdefault((ratio["bytes"], ratio["inplace"]), []).append(ratio["ratio"])
    lines = []
    for (size, in_place), values in sorted(by_size.items()):
        middle = statistics.median(values)
        place = "in place" if in_place else "out of place"
        name = f"{ranks} ranks, allreduce {size} B {place}, as installed"
        verdict = "" if middle >= 1 else "  slower than Open MPI"
        print(
            f"{name:58} {1:6.1f} {middle:7.2f}  {min(values):6.2f}-{max(values):6.2f}{verdict}",
            flush=True,
        )
        lines.append({"case": name, "floor": 1, "ratios": values, "ratio": middle})
    return lines


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hvdbench", default=find("hvdbench", "bazel-bin/benchmarks"))
    parser.add_argument("--plugin", default=find("liballring_mpi.so", "bazel-bin/bindings/mpi"))
    parser.add_argument("--layer", choices=("core", "runtime"), default="core")
    parser.add_argument("--only", default="", help="cases whose name holds these words")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sweep", action="store_true", help="all sizes instead of the table")
    parser.add_argument("--ranks", type=int, default=2, help="of the sweep")
    parser.add_argument("--json", help="writes the lines to a file")
    arguments = parser.parse_args()
    if not arguments.hvdbench:
        sys.exit("compare_openmpi: no hvdbench: run tools/build, or name it by --hvdbench")
    if not shutil.which("mpirun"):
        sys.exit("compare_openmpi: no mpirun: apt-get install openmpi-bin")
    bench = Bench(arguments.hvdbench, arguments.plugin)
    if arguments.sweep:
        lines = sweep(bench, arguments.ranks, arguments.layer, arguments.repeats)
    else:
        cases = [case for case in all_cases(arguments.layer) if arguments.only in case.name]
        if not cases:
            sys.exit(f'compare_openmpi: no case holds "{arguments.only}"')
        lines = compare(bench, cases, arguments.repeats)
    measured = [line for line in lines if "ratio" in line]
    reached = [line for line in measured if line["ratio"] >= line["floor"]]
    print(f"{len(reached)} of {len(lines)} reach their floor")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(lines, indent=1) + "\n")


if __name__ == "__main__":
    main()
