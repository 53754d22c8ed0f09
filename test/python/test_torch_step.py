"""The benchmark of training steps: its arithmetic is checked, its structure, and no time."""

import json

import pytest

import launch

PROGRAM = launch.ROOT / "benchmarks" / "torch_step.py"


@pytest.mark.slow
def test_against_gloo(tmp_path):
    file = tmp_path / "results.json"
    output = launch.check(
        2, PROGRAM, "--against", "gloo", "-n", 2, "-w", 1, "--json", file, timeout=150
    )
    assert "ResNet-50's 161 parameters, 2 ranks" in output
    document = json.loads(file.read_text())
    assert document["np"] == 2
    assert document["tensors"] == 161
    results = document["results"]
    assert [r["impl"] for r in results] == ["torch", "allring", "gloo", "gloo"]
    for result in results:
        assert 0 < result["time_ms"]["min"] <= result["time_ms"]["median"]
    ours = results[1]["time_ms"]["median"]
    assert [r["ratio"] for r in document["ratios"]] == [
        pytest.approx(r["time_ms"]["median"] / ours) for r in results[2:]
    ]


def test_alone():
    output = launch.check(1, PROGRAM, "-n", 2, "-w", 0, starter="alone")
    assert "DistributedOptimizer" in output
    assert "DDP" not in output
