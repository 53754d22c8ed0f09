"""The digits example learns, and learns the same on any number of ranks."""

import functools
import re

import pytest

import launch

DIGITS = launch.ROOT / "examples" / "torch_digits.py"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A function: the losses and the output of a number of ranks, run when first asked for."""
    folder = tmp_path_factory.mktemp("digits")

    @functools.cache
    def result(ranks):
        losses = folder / f"losses.{ranks}"
        output = launch.check(ranks, DIGITS, "--losses", losses, timeout=150)
        return [float(line) for line in losses.read_text().split()], output

    return result


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_accuracy(results, ranks):
    _, output = results(ranks)
    accuracy = float(re.search(r"test accuracy: ([0-9.]+) %", output)[1])
    assert accuracy >= 97
    assert f"all {ranks} ranks hold the same weights" in output


def test_losses_do_not_depend_on_ranks(results):
    alone = results(1)[0]
    assert alone[0] > 10 * alone[-1] > 0
    for ranks in (2, 4):
        losses = results(ranks)[0]
        assert len(losses) == len(alone)
        for step in range(20):
            assert abs(losses[step] - alone[step]) < 1e-5, (ranks, step)


@pytest.mark.parametrize("starter", ["mpirun", "torchrun"])
def test_starter(starter):
    output = launch.check(2, DIGITS, "--epochs", 2, starter=starter)
    assert "all 2 ranks hold the same weights" in output


def test_batch_that_cannot_be_divided():
    result = launch.run(2, DIGITS, "--batch-size", 63)
    assert result.code != 0 and "--batch-size 63 is no multiple of 2 ranks" in result.output
