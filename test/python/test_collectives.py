"""Every collective, on numpy arrays and torch tensors, for 1 to 4 ranks."""

import random

import pytest

import launch


@pytest.fixture
def seed():
    chosen = random.randrange(1, 10**6)
    print(f"ALLRING_TEST_SEED={chosen}")
    return chosen


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_numpy(ranks, seed, tmp_path):
    launch.check(ranks, "numpy_worker.py", tmp_path / "barrier", ALLRING_TEST_SEED=seed)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_torch(ranks, seed):
    launch.check(ranks, "torch_worker.py", ALLRING_TEST_SEED=seed)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_optimizer(ranks, seed):
    launch.check(ranks, "optimizer_worker.py", ALLRING_TEST_SEED=seed)


@pytest.mark.parametrize("ranks", [2])
def test_lifetime(ranks):
    launch.check(ranks, "lifetime_worker.py")
