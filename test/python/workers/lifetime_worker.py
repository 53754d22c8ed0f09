"""Memory lives as long as something uses it, and no longer."""

import gc
import os
import threading
import time

import numpy as np
import torch

import allring
import allring.torch as hvd
import checks
from allring import handles


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_dropped_handles():
    """Neither handle nor arrays are kept by the program while the operation runs."""
    for turn in range(10):
        for number in range(10):
            allring.allreduce_async(np.full(20000, float(turn)), name=f"dropped.{number}")
            hvd.allreduce_async_(torch.full((20000,), float(turn)), name=f"torch.{number}")
        gc.collect()
        scratch = [np.full(20000, -1.0) for _ in range(20)]  # takes freed memory, if there is any
        allring.barrier()
        assert all((array == -1.0).all() for array in scratch)
    for _ in range(1000):  # agreed, as the ranks must make the same calls
        if allring.allreduce(len(handles._in_flight), op=allring.Max) == 0:
            break
    assert not handles._in_flight, handles._in_flight
    assert not handles._orphans


def check_results_outlive_handles():
    size = allring.size()
    kept = []
    for turn in range(50):
        array = allring.allgather(np.full(1000, turn))
        part = hvd.allgather(torch.full((1000,), turn))[1:].view(-1)
        kept.append((turn, array[5:], part))
        hvd.grouped_allgather([torch.ones(1000), torch.ones(3)])
    gc.collect()
    for turn, array, part in kept:
        assert (array == turn).all() and len(array) == 1000 * size - 5
        assert bool((part == turn).all()) and len(part) == 1000 * size - 1
        array += 1  # writable
        part += 1
    one, two = hvd.grouped_allgather([torch.ones(1000), torch.full((3,), 2.0)])
    del one
    gc.collect()
    assert two.tolist() == [2.0] * 3 * size


def check_results_are_freed():
    megabytes = 8
    for _ in range(3):
        hvd.allgather(torch.ones(megabytes << 18))
    before = resident_bytes()
    for turn in range(30):
        hvd.allgather(torch.ones(megabytes << 18))
        allring.allgather(np.ones(megabytes << 17))
        hvd.alltoall(torch.ones((megabytes << 18) // allring.size() * allring.size()))
        hvd.reducescatter(torch.ones(megabytes << 18), name=f"scatter.{turn}")
    grown = resident_bytes() - before
    assert grown < 20 * megabytes << 20, f"{grown >> 20} MiB more"


def check_unnamed_calls_do_not_accumulate():
    for _ in range(200):
        allring.allreduce(np.ones(10))
    before = resident_bytes()
    for _ in range(3000):
        allring.allreduce(np.ones(10))
    grown = resident_bytes() - before
    assert grown < 4 << 20, f"{grown >> 10} KiB more"


def check_threads():
    """Several threads at once, each with names of its own; each handle yields its result once."""
    failures = []

    def work(number):
        try:
            for turn in range(20):
                total = allring.allreduce(
                    np.full(100, number), name=f"thread.{number}.{turn}", op=allring.Sum
                )
                assert (total == number * allring.size()).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def check_waiting_leaves_other_threads_alone():
    """The interpreter's lock is free while a rank waits."""
    counted = [0]
    stop = threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        if allring.rank() == 0 and allring.size() > 1:
            handle = allring.allreduce_async(np.ones(2), name="wait")
            start = counted[0]
            allring.broadcast_object(None, root_rank=1)  # rank 1 is slow to come
            assert counted[0] > start + 1000, counted[0] - start
            allring.synchronize(handle)
        elif allring.size() > 1:
            if allring.rank() == 1:
                time.sleep(0.5)
            allring.broadcast_object(None, root_rank=1)
            allring.allreduce(np.ones(2), name="wait")
    finally:
        stop.set()
        thread.join()


def check_fork():
    """A forked child knows its place, but cannot use the runtime; the parent is not disturbed."""
    place = allring.rank(), allring.size()
    child = os.fork()
    if child == 0:
        code = 0 if (allring.rank(), allring.size()) == place else 2
        try:
            allring.allreduce(np.ones(2))
            code = 1
        except ValueError:
            pass
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert allring.allreduce(np.ones(2), op=allring.Sum)[0] == allring.size()


if __name__ == "__main__":
    checks.main(globals())
