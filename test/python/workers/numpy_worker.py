"""Every collective on numpy arrays, against numpy."""

import random
import sys

import numpy as np

import allring as hvd
import checks
from checks import raises

INTEGERS = ["uint8", "int8", "uint16", "int16", "int32", "int64"]
FLOATS = ["float16", "float32", "float64"]
DTYPES = [*INTEGERS, *FLOATS, "bool"]


def shapes(rng, count=4, least=0):
    """Random shapes with few elements, and one with many."""
    chosen = [
        tuple(int(n) for n in rng.integers(0, 6, rng.integers(least, 5))) for _ in range(count)
    ]
    return [*chosen, (int(rng.integers(1, 70000)),)]


def values(rng, shape, dtype):
    """Values whose sums and products over 4 ranks are exact in every dtype."""
    if dtype == "bool":
        drawn = rng.integers(0, 2, shape)
    elif dtype in FLOATS:
        drawn = rng.integers(-8, 9, shape) / 4
    else:
        drawn = rng.integers(0 if dtype.startswith("u") else -3, 4, shape)
    return np.array(drawn, dtype)


def per_rank(rng, shape, dtype):
    """What each rank contributes; equal seeds give all ranks the same list."""
    return [values(rng, shape, dtype) for _ in range(hvd.size())]


def reduced(op, arrays):
    """The reduction as numpy does it, in a wider type."""
    dtype = arrays[0].dtype
    wide = np.stack(arrays)
    if dtype.kind == "b":
        return wide.any(0) if op in (hvd.Sum, hvd.Max) else wide.all(0)
    wide = wide.astype(np.float64 if dtype.kind == "f" else np.int64)
    if op == hvd.Average:
        total = wide.sum(0)
        if dtype.kind == "f":
            return (total / len(arrays)).astype(dtype)
        return (np.sign(total) * (np.abs(total) // len(arrays))).astype(dtype)
    reduce = {hvd.Sum: np.sum, hvd.Min: np.min, hvd.Max: np.max, hvd.Product: np.prod}[op]
    return reduce(wide, axis=0).astype(dtype)


def same(got, expected):
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    if got.dtype.kind == "f":
        # An average may be a sum times a rounded reciprocal.
        np.testing.assert_allclose(got, expected, rtol=2 * float(np.finfo(got.dtype).eps))
    else:
        np.testing.assert_array_equal(got, expected)


def ops_of(dtype):
    ops = [hvd.Sum, hvd.Min, hvd.Max, hvd.Product]
    return ops if dtype == "bool" else [hvd.Average, *ops]


def check_basics():
    assert hvd.is_initialized()
    hvd.init()  # does nothing
    assert 0 <= hvd.rank() < hvd.size()
    assert hvd.local_size() * hvd.cross_size() == hvd.size()
    assert (hvd.local_rank(), hvd.cross_rank()) == (hvd.rank(), 0)
    assert hvd.is_homogeneous() is True
    ranks = hvd.allgather(np.array([hvd.rank()]))
    assert ranks.tolist() == list(range(hvd.size()))
    assert hvd.global_process_set.size() == hvd.size()
    assert hvd.global_process_set.rank() == hvd.rank()
    assert hvd.global_process_set.ranks == ranks.tolist()
    assert hvd.global_process_set.included()
    assert hvd.describe()["version"] == hvd.__version__
    assert not hvd.gloo_built() and not hvd.mpi_enabled() and hvd.nccl_built() == 0
    with raises(hvd.UnsupportedError):
        hvd.ProcessSet([0])
    with raises(hvd.UnsupportedError, "comm"):
        hvd.init(comm=[0])
    with raises(ValueError, "process_set"):
        hvd.barrier(process_set="all")


def check_allreduce():
    rng = np.random.default_rng(checks.SEED)
    for dtype in DTYPES:
        for op in ops_of(dtype):
            for shape in shapes(rng):
                inputs = per_rank(rng, shape, dtype)
                mine = inputs[hvd.rank()]
                before, expected = mine.copy(), reduced(op, inputs)
                same(hvd.allreduce(mine, op=op), expected)
                np.testing.assert_array_equal(mine, before)
                assert hvd.allreduce_(mine, op=op) is mine
                same(mine, expected)


def check_allreduce_async():
    rng = np.random.default_rng(checks.SEED)
    cases = []
    for number, dtype in enumerate(DTYPES * 4):
        op = random.Random(number).choice(ops_of(dtype))
        cases.append((f"case.{number}", op, per_rank(rng, shapes(rng, 1)[number % 2], dtype)))
    # Each rank starts them in an order of its own.
    mine = list(enumerate(cases))
    random.Random(hvd.rank()).shuffle(mine)
    handles = {
        number: hvd.allreduce_async(inputs[hvd.rank()], name, op)
        for number, (name, op, inputs) in mine
    }
    for number, (_, op, inputs) in enumerate(cases):
        same(hvd.synchronize(handles[number]), reduced(op, inputs))
        assert hvd.poll(handles[number])


def check_scale():
    rng = np.random.default_rng(checks.SEED)
    for dtype in FLOATS:
        inputs = per_rank(rng, (5, 3), dtype)
        got = hvd.allreduce(
            inputs[hvd.rank()], op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0
        )
        same(got, reduced(hvd.Sum, [i * np.array(2, dtype) for i in inputs]))
        got = hvd.reducescatter(
            inputs[hvd.rank()], op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5
        )
        same(got, rows_of(reduced(hvd.Sum, inputs), hvd.rank()))
    # float16 accumulates in float32: the sum would be infinite.
    big = np.full(7, 60000, np.float16)
    same(hvd.allreduce(big), big)
    # Integers keep all their bits.
    big = np.full(3, 2**62 // hvd.size() + 1, np.int64)
    same(hvd.allreduce(big), big)


def check_not_contiguous():
    rng = np.random.default_rng(checks.SEED)
    inputs = per_rank(rng, (6, 8), "float32")
    mine = inputs[hvd.rank()]
    expected = reduced(hvd.Sum, inputs)
    same(hvd.allreduce(np.asfortranarray(mine), op=hvd.Sum), expected)
    same(hvd.allreduce(mine.T, op=hvd.Sum), expected.T)
    same(hvd.allreduce(mine[::2, ::-1], op=hvd.Sum), expected[::2, ::-1])
    same(hvd.allgather(mine[:, 1]), np.concatenate([i[:, 1] for i in inputs]))
    into = mine.copy()
    assert hvd.allreduce_(into[:, ::3], op=hvd.Sum).base is into
    same(into[:, ::3], expected[:, ::3])
    same(into[:, 1], mine[:, 1])
    hvd.broadcast_(into.T, root_rank=hvd.size() - 1, name="transposed")
    root = inputs[-1].copy()
    root[:, ::3] = expected[:, ::3]
    same(into, root)
    packed = np.zeros(5, dtype=[("byte", "u1"), ("value", "<f4")])
    packed["value"] = hvd.rank()
    same(hvd.allreduce(packed["value"], op=hvd.Max), np.full(5, hvd.size() - 1, np.float32))
    one = np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float32)  # not aligned
    same(hvd.allreduce(one + 1, op=hvd.Sum), np.full(2, hvd.size(), np.float32))
    hvd.allreduce_(one)


def check_array_likes():
    assert hvd.allreduce(1.5, op=hvd.Sum) == 1.5 * hvd.size()
    assert hvd.allreduce([1, 2], op=hvd.Sum).tolist() == [hvd.size(), 2 * hvd.size()]
    same(hvd.broadcast(np.float32(hvd.rank()), 0), np.array(0, np.float32))


def check_grouped():
    rng = np.random.default_rng(checks.SEED)
    dtypes = ["float32", "int64", "float16", "uint8"]
    shapes_ = [(3, 4), (), (0, 2), (1000,)]
    inputs = [per_rank(rng, shape, dtype) for shape, dtype in zip(shapes_, dtypes)]
    mine = [each[hvd.rank()] for each in inputs]
    for op in [hvd.Average, hvd.Sum, hvd.Max]:
        expected = [reduced(op, each) for each in inputs]
        for got, want in zip(hvd.grouped_allreduce(mine, op=op), expected):
            same(got, want)
        copies = [array.copy() for array in mine]
        results = hvd.grouped_allreduce_(copies, name="group", op=op)
        for got, copy, want in zip(results, copies, expected):
            assert got is copy
            same(got, want)
    rows = [0, 2, 3]
    gathered = hvd.grouped_allgather([mine[row] for row in rows])
    for got, row in zip(gathered, rows):
        same(got, np.concatenate(inputs[row]))
    scattered = hvd.grouped_reducescatter([mine[0], mine[3]], op=hvd.Sum)
    for got, row in zip(scattered, [0, 3]):
        same(got, rows_of(reduced(hvd.Sum, inputs[row]), hvd.rank()))
    with raises(ValueError, "at least one"):
        hvd.grouped_allreduce([])


def check_allgather():
    rng = np.random.default_rng(checks.SEED)
    for dtype in DTYPES:
        for shape in shapes(rng, least=1):
            rows = rng.integers(0, 5, hvd.size())
            inputs = [values(rng, (int(n), *shape[1:]), dtype) for n in rows]
            same(hvd.allgather(inputs[hvd.rank()]), np.concatenate(inputs))
            handle = hvd.allgather_async(inputs[hvd.rank()], name="gather")
            same(hvd.synchronize(handle), np.concatenate(inputs))
    same(hvd.allgather(np.empty((0, 3), np.int32)), np.empty((0, 3), np.int32))
    with raises(ValueError, "scalar"):
        hvd.allgather(np.float32(1))


def check_broadcast():
    rng = np.random.default_rng(checks.SEED)
    for dtype in DTYPES:
        for shape in shapes(rng):
            root = int(rng.integers(hvd.size()))
            inputs = per_rank(rng, shape, dtype)
            mine = inputs[hvd.rank()]
            same(hvd.broadcast(mine, root), inputs[root])
            handle = hvd.broadcast_async(mine, root, name="cast")
            same(hvd.synchronize(handle), inputs[root])
            assert hvd.broadcast_(mine, root) is mine
            same(mine, inputs[root])
    with raises(ValueError, "root"):
        hvd.broadcast(np.zeros(1), root_rank=hvd.size())


def check_alltoall():
    rng = np.random.default_rng(checks.SEED)
    size, rank = hvd.size(), hvd.rank()
    for dtype in DTYPES:
        for shape in shapes(rng, least=1):
            splits = rng.integers(0, 4, (size, size))
            inputs = [values(rng, (int(s.sum()), *shape[1:]), dtype) for s in splits]
            parts = [np.split(i, np.cumsum(s)[:-1]) for i, s in zip(inputs, splits)]
            got, received = hvd.alltoall(inputs[rank], splits[rank])
            same(got, np.concatenate([part[rank] for part in parts]))
            same(received, splits[:, rank].astype(np.int64))
            equal = [values(rng, (2 * size, *shape[1:]), dtype) for _ in range(size)]
            expected = np.concatenate([e[2 * rank : 2 * rank + 2] for e in equal])
            same(hvd.alltoall(equal[rank]), expected)
            same(hvd.synchronize(hvd.alltoall_async(equal[rank]))[0], expected)
    with raises(ValueError, "splits"):
        hvd.alltoall(np.zeros(2), splits=[3] + [0] * (size - 1))
    with raises(ValueError, "splits"):
        hvd.alltoall(np.zeros(2), splits=[0] * (size + 1))
    with raises(ValueError, "splits"):
        hvd.alltoall(np.zeros(2), splits=[0.5] * size)
    if size > 1:
        with raises(ValueError):
            hvd.alltoall(np.zeros(size + 1))


def rows_of(array, rank):
    """The rows that reducescatter gives to a rank."""
    each, more = divmod(len(array), hvd.size())
    first = rank * each + min(rank, more)
    return array[first : first + each + (rank < more)]


def check_reducescatter():
    rng = np.random.default_rng(checks.SEED)
    for dtype in INTEGERS + FLOATS:
        for shape in shapes(rng, least=1):
            for op in (hvd.Average, hvd.Sum):
                inputs = per_rank(rng, shape, dtype)
                expected = rows_of(reduced(op, inputs), hvd.rank())
                same(hvd.reducescatter(inputs[hvd.rank()], op=op), expected)
                handle = hvd.reducescatter_async(inputs[hvd.rank()], name="scatter", op=op)
                same(hvd.synchronize(handle), expected)
    with raises(ValueError):
        hvd.reducescatter(np.zeros(4), op=hvd.Max)


def check_barrier():
    path = sys.argv[1]
    for turn in range(1, 6):
        with open(path, "a", encoding="utf-8") as file:
            file.write("x")
        hvd.barrier()
        with open(path, encoding="utf-8") as file:
            assert len(file.read()) == turn * hvd.size()
        hvd.barrier()


def check_objects():
    size, rank = hvd.size(), hvd.rank()
    sent = {"rank": rank, "text": "é" * 100000, "array": np.arange(rank + 3)}
    got = hvd.broadcast_object(sent, root_rank=size - 1)
    assert got["rank"] == size - 1 and got["array"].tolist() == list(range(size + 2))
    assert (got is sent) == (rank == size - 1)
    everything = hvd.allgather_object([rank] * rank, name="objects")
    assert everything == [[r] * r for r in range(size)]
    # What cannot be pickled is an error on all ranks, and nobody waits.
    bad = (lambda: 0) if rank == 0 else 0
    for call in (hvd.broadcast_object, hvd.allgather_object):
        try:
            call(bad)
        except hvd.HorovodInternalError as error:
            assert rank != 0 and "rank 0" in str(error)
        except Exception as error:
            assert rank == 0 and "pickle" in str(error)
        else:
            raise AssertionError("no error")


def check_bad_arguments():
    with raises(ValueError, "complex128"):
        hvd.allreduce(np.zeros(2, complex))
    with raises(ValueError, "uint32"):
        hvd.allreduce(np.zeros(2, np.uint32))
    with raises(ValueError, ">f4"):
        hvd.allreduce(np.zeros(2, ">f4"))
    with raises(ValueError, "ndarray"):
        hvd.allreduce_([1.0])
    with raises(ValueError, "writable"):
        hvd.allreduce_(np.broadcast_to(np.float32(1), 3))
    with raises(ValueError, "bool"):
        hvd.allreduce(np.zeros(2, bool), op=hvd.Average)
    with raises(NotImplementedError, "Adasum"):
        hvd.allreduce(np.zeros(2), op=hvd.Adasum)
    with raises(ValueError, "op"):
        hvd.allreduce(np.zeros(2), op=17)
    with raises(ValueError, "NUL"):
        hvd.allreduce(np.zeros(2), name="a\0b")
    with raises(ValueError, "handle"):
        hvd.synchronize(None)
    with raises(ValueError, "handle"):
        hvd.poll(3)
    handle = hvd.allreduce_async(np.zeros(2))
    hvd.synchronize(handle)
    with raises(ValueError, "already"):
        hvd.synchronize(handle)


def check_mismatches():
    """What differs is an error on all ranks that names all of it; the next operation works."""
    if hvd.size() == 1:
        return
    odd = hvd.rank() == hvd.size() - 1
    zeros = np.zeros((4, 3), np.float32)
    cases = [
        ("dtype", lambda n: hvd.allreduce(zeros.astype("f8") if odd else zeros, name=n)),
        ("shape", lambda n: hvd.allreduce(zeros[1:] if odd else zeros, name=n)),
        ("op", lambda n: hvd.allreduce(zeros, name=n, op=hvd.Min if odd else hvd.Sum)),
        ("scale", lambda n: hvd.allreduce(zeros, name=n, prescale_factor=2.0 if odd else 1.0)),
        ("root", lambda n: hvd.broadcast(zeros, root_rank=int(odd), name=n)),
        ("row", lambda n: hvd.allgather(zeros[:, 1:] if odd else zeros, name=n)),
        ("kind", lambda n: hvd.allgather(zeros, name=n) if odd else hvd.allreduce(zeros, name=n)),
        ("group", lambda n: hvd.grouped_allreduce([zeros, zeros[odd:]], name=n)),
    ]
    for what, call in cases:
        name = f"mismatch.{what}"
        for _ in range(2):  # the second time nothing of it may be remembered
            with raises(hvd.MismatchError, name, str(hvd.size() - 1)):
                call(name)
            same(hvd.allreduce(zeros + 1, name=name, op=hvd.Min), zeros + 1)


def check_same_name_twice():
    if hvd.size() == 1:
        return  # it is done at once
    ones = np.ones(3)
    if hvd.rank() == 0:
        handle = hvd.allreduce_async(ones, name="twice")
        with raises(ValueError, "twice"):
            hvd.allreduce_async(ones, name="twice")
        hvd.barrier()
    else:
        hvd.barrier()
        handle = hvd.allreduce_async(ones, name="twice")
    same(hvd.synchronize(handle), ones)


if __name__ == "__main__":
    checks.main(globals())
