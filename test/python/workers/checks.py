"""Runs the check_* functions of a worker one after another, on all ranks at once."""

import contextlib
import os
import sys
import time
import traceback

import allring

SEED = int(os.environ.get("ALLRING_TEST_SEED", "0") or 0)


@contextlib.contextmanager
def raises(error, *words):
    """The block must raise `error`, with all `words` in its text."""
    try:
        yield
    except error as caught:
        missing = [word for word in words if word not in str(caught)]
        assert not missing, f"{missing} not in the message: {caught}"
        return
    raise AssertionError(f"expected {error.__name__}, but nothing was raised")


def main(namespace, only=None):
    """Runs the checks; the seed is in ALLRING_TEST_SEED and printed."""
    allring.init()
    try:
        for name, check in list(namespace.items()):
            if not name.startswith("check_") or (only and name not in only):
                continue
            start = time.monotonic()
            check()
            allring.barrier()
            if allring.rank() == 0:
                print(f"{name}: {time.monotonic() - start:.2f} s")
    except BaseException:
        traceback.print_exc()
        print(f"rank {allring.rank()}: {name} failed; ALLRING_TEST_SEED={SEED}", flush=True)
        # Not sys.exit(): the others may wait for this rank.
        os._exit(1)
    allring.shutdown()
    sys.stdout.flush()
