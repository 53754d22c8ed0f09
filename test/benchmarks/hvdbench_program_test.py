"""hvdbench as a program: what it prints and writes, alone and under mpirun. No time is asserted."""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HVDBENCH = os.path.abspath(sys.argv[1])
PLUGIN = os.path.abspath(sys.argv[2])


def run(*arguments, ranks=0, **environment):
    """Runs hvdbench, under mpirun if there are ranks; gives status, output and error output."""
    command = [HVDBENCH, *arguments]
    if ranks:
        command = ["mpirun", "-np", str(ranks), "--oversubscribe", *command]
    env = dict(os.environ, HOME=os.environ.get("TEST_TMPDIR", "/tmp"), **environment)
    env.setdefault("ALLRING_MPI_LIBRARY", PLUGIN)
    child = subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )
    return child.returncode, child.stdout, child.stderr


class HvdbenchTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)

    def measure(self, *arguments, ranks=2):
        """Runs it and reads its JSON."""
        file = self.folder / "results.json"
        status, output, errors = run(*arguments, "--json", str(file), ranks=ranks)
        self.assertEqual(status, 0, f"{output}\n{errors}")
        return json.loads(file.read_text()), output

    def check_pairs(self, document, sizes, places):
        """Ours and the peer's results alternate, all right, and each pair has its ratio."""
        results = document["results"]
        self.assertEqual([r["impl"] for r in results], ["allring", "openmpi"] * sizes * places)
        for result in results:
            self.assertEqual(result["wrong"], 0)
            time = result["time_us"]
            self.assertTrue(0 < time["min"] <= time["median"] <= time["max"], time)
        self.assertEqual(len(document["ratios"]), sizes * places)
        for ratio, ours, peer in zip(document["ratios"], results[::2], results[1::2]):
            self.assertEqual(
                set(ratio), {"collective", "bytes", "buffers", "inplace", "against", "ratio"}
            )
            for key in ("collective", "bytes", "inplace"):
                self.assertEqual(ratio[key], ours[key])
                self.assertEqual(ratio[key], peer[key])
            self.assertEqual(ratio["against"], "openmpi")
            self.assertAlmostEqual(
                ratio["ratio"], peer["time_us"]["median"] / ours["time_us"]["median"], places=6
            )

    def test_allreduce_against_open_mpi(self):
        for layer in ("core", "runtime"):
            with self.subTest(layer=layer):
                document, output = self.measure(
                    "allreduce", "--layer", layer, "--against", "openmpi",
                    "-b", "8", "-e", "64K", "-f", "8192", "-n", "6", "-w", "1",
                )  # fmt: skip
                self.assertEqual((document["np"], document["hosts"]), (2, 1))
                self.check_pairs(document, sizes=2, places=2)
                self.assertEqual(document["results"][0]["layer"], layer)
                self.assertIn("Open MPI", document["peer"])
                self.assertIn("against Open MPI", output)
                self.assertIn("GB/s in this run", output)

    def test_ours_in_the_arena_and_the_peer_in_private_memory(self):
        for layer in ("core", "runtime"):
            with self.subTest(layer=layer):
                document, _ = self.measure(
                    "allreduce", "--layer", layer, "--against", "openmpi", "--buffers", "arena",
                    "-b", "64K", "-e", "64K", "-n", "2", "-w", "1",
                )  # fmt: skip
                self.check_pairs(document, sizes=1, places=2)
                buffers = [r["buffers"] for r in document["results"]]
                self.assertEqual(buffers, ["arena", "private"] * 2)
                self.assertEqual({r["buffers"] for r in document["ratios"]}, {"arena"})
        document, _ = self.measure(
            "step", "--model", "many-small", "--against", "openmpi", "--buffers", "arena",
            "-n", "1", "-w", "0",
        )  # fmt: skip
        self.assertEqual([r["buffers"] for r in document["results"]], ["arena"] + ["private"] * 5)
        self.assertEqual({r["wrong"] for r in document["results"]}, {0})

    def test_every_collective_against_open_mpi(self):
        for collective in ("allgather", "reduce_scatter", "broadcast", "alltoall"):
            with self.subTest(collective=collective):
                document, _ = self.measure(
                    collective, "--layer", "core", "--against", "openmpi",
                    "-b", "40000", "-e", "40000", "-n", "3", "-w", "1", "-d", "int32",
                    ranks=3,
                )  # fmt: skip
                self.check_pairs(document, sizes=1, places=2 if collective == "broadcast" else 1)
        document, _ = self.measure("barrier", "--layer", "core", "--against", "openmpi", "-n", "3")
        self.assertEqual([r["impl"] for r in document["results"]], ["allring", "openmpi"])
        self.assertEqual(len(document["ratios"]), 1)

    def test_step_against_open_mpi(self):
        document, output = self.measure(
            "step", "--model", "many-small", "--against", "openmpi", "-n", "2", "-w", "1"
        )
        modes = [r["mode"] for r in document["results"]]
        self.assertEqual(modes[:2], ["runtime", "tensor by tensor"])
        self.assertEqual(len(modes), 6)
        self.assertEqual({r["wrong"] for r in document["results"]}, {0})
        self.assertEqual([r["mode"] for r in document["ratios"]], [*modes[1:], "best"])
        best = document["ratios"].pop()["ratio"]
        self.assertEqual(best, min(r["ratio"] for r in document["ratios"]))
        self.assertIn("1000 tensors", output)

    def test_alone(self):
        file = self.folder / "results.csv"
        status, output, errors = run("-b", "8", "-e", "8", "--csv", str(file), "--share")
        self.assertEqual(status, 0, errors)
        self.assertIn("#wrong", output)
        rows = list(csv.DictReader(file.read_text().splitlines()))
        self.assertEqual([row["impl"] for row in rows], ["allring", "allring"])
        self.assertEqual({row["wrong"] for row in rows}, {"0"})

    def test_mistakes_are_one_line_and_status_two(self):
        for arguments, words in (
            (["allreduce", "--against", "openmpi"], "mpirun -np 2 hvdbench"),
            (["step", "--against", "openmpi"], "mpirun -np 2 hvdbench"),
            (["allreduce", "--against", "openmpi", "-d", "bfloat16"], "no bfloat16"),
            (["allreduce", "--against", "openmpi", "-o", "average"], "no average"),
            (["allreduce", "--against", "mpich"], "mpich"),
            (["step", "--model", "vgg"], "vgg"),
            (["allreduce", "--buffers", "huge"], "huge"),
            (["limits", "-x"], "hvdbench limits --help"),
            (["allreduce", "-b", "1K", "-e", "8", "--json", "x"], "sizes must grow"),
        ):
            with self.subTest(arguments=arguments):
                status, output, errors = run(*arguments)
                self.assertEqual(status, 2)
                self.assertEqual(output, "")
                self.assertEqual(len(errors.splitlines()), 1, errors)
                self.assertIn(words, errors)

    def test_a_plot_without_matplotlib_is_refused_in_one_line_before_anything_is_measured(self):
        status, output, errors = run(
            "-b", "8", "-e", "8", "--plot", str(self.folder / "x.svg"), PYTHONPATH=str(self.folder)
        )
        if status == 0:
            self.assertIn("<svg", (self.folder / "x.svg").read_text())
        (self.folder / "matplotlib.py").write_text("raise ImportError\n")
        status, output, errors = run(
            "-b", "8", "-e", "8", "--plot", str(self.folder / "x.svg"), PYTHONPATH=str(self.folder)
        )
        self.assertEqual((status, output), (1, ""))
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn("matplotlib", errors)

    def test_limits(self):
        file = self.folder / "limits.json"
        status, output, errors = run("limits", "--json", str(file))
        self.assertEqual(status, 0, errors)
        limits = json.loads(file.read_text())["limits"]
        self.assertEqual(
            {limit["name"] for limit in limits},
            {"memcpy", "add", "read_peer", "overwrite_peer", "overwrite_read", "line", "wake_up"}
            | {"tcp", "tcp_8B"},
        )
        self.assertTrue(all(limit["value"] > 0 for limit in limits), limits)
        self.assertIn("a cache line, one way", output)

    def test_a_missing_plugin_is_named(self):
        status, _, errors = run(
            "--against", "openmpi", ranks=1, ALLRING_MPI_LIBRARY="/nonexistent/plugin.so"
        )
        self.assertEqual(status, 1)
        self.assertIn("/nonexistent/plugin.so", errors)
        self.assertIn("ALLRING_MPI_LIBRARY", errors)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
