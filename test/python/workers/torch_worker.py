"""Every collective on torch tensors, against torch; and their gradients."""

import torch

import allring.torch as hvd
import checks
from checks import raises

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
DTYPES = [*INTEGERS, *FLOATS, torch.bool]

torch.set_num_threads(1)


def generator():
    return torch.Generator().manual_seed(checks.SEED)


def shapes(random, least=0):
    def number(low, high):
        return int(torch.randint(low, high, (), generator=random))

    some = [tuple(number(0, 6) for _ in range(number(least, 5))) for _ in range(3)]
    return [*some, (number(1, 70000),)]


def values(random, shape, dtype):
    """Values whose sums and products over 4 ranks are exact in every dtype."""
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=random).to(dtype)
    if dtype.is_floating_point:
        return (torch.randint(-8, 9, shape, generator=random) / 4).to(dtype)
    low = 0 if dtype in (torch.uint8, torch.uint16) else -3
    return torch.randint(low, 4, shape, generator=random).to(dtype)


def per_rank(random, shape, dtype):
    return [values(random, shape, dtype) for _ in range(hvd.size())]


def reduced(op, tensors):
    dtype = tensors[0].dtype
    wide = torch.stack([t.to(torch.float64) for t in tensors])
    if dtype == torch.bool:
        return (wide.amax(0) if op in (hvd.Sum, hvd.Max) else wide.amin(0)).to(dtype)
    if op == hvd.Average:
        mean = wide.sum(0) / len(tensors)
        return (mean if dtype.is_floating_point else mean.trunc()).to(dtype)
    if op == hvd.Product:
        return wide.prod(0).to(dtype)
    return {hvd.Sum: wide.sum(0), hvd.Min: wide.amin(0), hvd.Max: wide.amax(0)}[op].to(dtype)


def same(got, expected):
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    if got.dtype.is_floating_point:
        eps = torch.finfo(got.dtype).eps
        torch.testing.assert_close(got, expected, rtol=2 * eps, atol=0, equal_nan=True)
    else:
        assert torch.equal(got, expected), (got, expected)


def check_basics():
    assert hvd.is_homogeneous()
    assert (hvd.Average, hvd.Sum, hvd.Adasum, hvd.Min, hvd.Max, hvd.Product) == (0, 1, 2, 3, 4, 5)


def check_allreduce():
    random = generator()
    for dtype in DTYPES:
        for op in [hvd.Average, hvd.Sum, hvd.Min, hvd.Max, hvd.Product]:
            if dtype == torch.bool and op == hvd.Average:
                continue
            for shape in shapes(random):
                tensors = per_rank(random, shape, dtype)
                mine, expected = tensors[hvd.rank()], reduced(op, tensors)
                same(hvd.allreduce(mine, op=op), expected)
                same(mine, tensors[hvd.rank()])
                same(hvd.synchronize(hvd.allreduce_async(mine, op=op, name="async")), expected)
                copy = mine.clone()
                assert hvd.allreduce_(copy, op=op) is copy
                same(copy, expected)


def check_average_argument():
    x = torch.ones(3)
    same(hvd.allreduce(x, average=False), x * hvd.size())
    same(hvd.allreduce(x, average=True), x)
    same(hvd.allreduce(x), x)
    for call in (hvd.allreduce, hvd.allreduce_, hvd.allreduce_async, hvd.allreduce_async_):
        with raises(ValueError, "average"):
            call(x, average=True, op=hvd.Sum)
    with raises(ValueError, "average"):
        hvd.grouped_allreduce([x], average=True, op=hvd.Sum)


def check_compression():
    for compression in (hvd.Compression.fp16, hvd.Compression.bf16):
        x = torch.full((5,), 0.1, dtype=torch.float64) * (hvd.rank() + 1)
        y = hvd.allreduce(x, compression=compression, op=hvd.Sum)
        want = torch.full((5,), 0.1, dtype=torch.float64) * sum(range(1, hvd.size() + 1))
        assert y.dtype == torch.float64
        torch.testing.assert_close(y, want, rtol=1e-2, atol=0)
        i = hvd.allreduce(torch.arange(3), compression=compression, op=hvd.Sum)
        same(i, torch.arange(3) * hvd.size())
        z = hvd.reducescatter(torch.ones(hvd.size(), 2), compression=compression)
        same(z, torch.ones(1, 2))
    # The sum of these is too large for float16, its average is not.
    for dtype in (torch.float16, torch.bfloat16):
        big = torch.full((3,), 60000.0, dtype=dtype)
        same(hvd.allreduce(big), big)


def check_not_contiguous():
    random = generator()
    tensors = per_rank(random, (4, 6), torch.float32)
    mine, expected = tensors[hvd.rank()], reduced(hvd.Sum, tensors)
    same(hvd.allreduce(mine.t(), op=hvd.Sum), expected.t())
    same(hvd.allreduce(mine[:, ::2], op=hvd.Sum), expected[:, ::2])
    same(hvd.allreduce(torch.ones(1).expand(4), op=hvd.Sum), torch.full((4,), float(hvd.size())))
    into = mine.clone()
    column = into[:, 1]
    assert hvd.allreduce_(column, op=hvd.Sum) is column
    same(into[:, 1], expected[:, 1])
    same(into[:, 0], mine[:, 0])
    image = torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
    same(hvd.broadcast_(image * (hvd.rank() + 1), 0), image)
    group = [mine.clone().t(), mine.clone()[1:, 2:4]]
    hvd.grouped_allreduce_(group, op=hvd.Sum)
    same(group[0], expected.t())
    same(group[1], expected[1:, 2:4])
    negative = torch.complex(torch.zeros(3), torch.ones(3)).conj().imag
    same(hvd.allreduce(negative, op=hvd.Sum), torch.full((3,), -float(hvd.size())))
    with raises(ValueError, "expanded"):
        hvd.allreduce_(torch.ones(1).expand(4))
    with raises(ValueError, "sparse"):
        hvd.allreduce(torch.eye(3).to_sparse())
    with raises(ValueError, "meta"):
        hvd.allreduce(torch.empty(3, device="meta"))
    with raises(ValueError, "complex64"):
        hvd.allreduce(torch.zeros(3, dtype=torch.complex64))
    with raises(ValueError, "list"):
        hvd.allreduce_async([1.0])
    with raises(NotImplementedError, "Adasum"):
        hvd.allreduce(torch.ones(3), op=hvd.Adasum)


def check_gathers():
    random = generator()
    rank, size = hvd.rank(), hvd.size()
    for dtype in DTYPES:
        for shape in shapes(random, least=1):
            rows = torch.randint(0, 4, (size,), generator=random).tolist()
            tensors = [values(random, (n, *shape[1:]), dtype) for n in rows]
            same(hvd.allgather(tensors[rank]), torch.cat(tensors))
            splits = torch.randint(0, 3, (size, size), generator=random)
            tensors = [values(random, (int(s.sum()), *shape[1:]), dtype) for s in splits]
            parts = [t.split(s.tolist()) for t, s in zip(tensors, splits)]
            expected = torch.cat([part[rank] for part in parts])
            got, received = hvd.alltoall(tensors[rank], splits[rank].int())
            same(got, expected)
            same(received, splits[:, rank].int())
            got, _ = hvd.alltoall(tensors[rank], splits=splits[rank].tolist(), name="all")
            same(got, expected)
    equal = torch.arange(2 * size) + 100 * rank
    expected = torch.cat([torch.arange(2 * rank, 2 * rank + 2) + 100 * r for r in range(size)])
    same(hvd.alltoall(equal), expected)
    pair = hvd.synchronize(hvd.alltoall_async(equal))
    same(pair[0], expected)
    same(pair[1], torch.full((size,), 2, dtype=torch.int32))
    with raises(ValueError, "splits"):
        hvd.alltoall(equal, splits=torch.ones(size))
    with raises(ValueError, "1-d"):
        hvd.alltoall(equal, splits=torch.ones(size, 1, dtype=torch.int32))


def rows_of(tensor, rank):
    each, more = divmod(len(tensor), hvd.size())
    first = rank * each + min(rank, more)
    return tensor[first : first + each + (rank < more)]


def check_broadcast_and_reducescatter():
    random = generator()
    for dtype in DTYPES:
        for shape in shapes(random):
            tensors = per_rank(random, shape, dtype)
            root = int(torch.randint(hvd.size(), (), generator=random))
            mine = tensors[hvd.rank()]
            same(hvd.broadcast(mine, root), tensors[root])
            copy = mine.clone()
            assert hvd.broadcast_(copy, root) is copy
            same(copy, tensors[root])
            if shape and dtype != torch.bool:
                got = hvd.reducescatter(mine, op=hvd.Sum)
                same(got, rows_of(reduced(hvd.Sum, tensors), hvd.rank()))


def check_grouped():
    random = generator()
    kinds = [((3, 4), torch.float32), ((), torch.bfloat16), ((0, 2), torch.float64)]
    tensors = [per_rank(random, shape, dtype) for shape, dtype in kinds]
    mine = [each[hvd.rank()] for each in tensors]
    expected = [reduced(hvd.Sum, each) for each in tensors]
    for got, want in zip(hvd.grouped_allreduce(mine, op=hvd.Sum), expected):
        same(got, want)
    compressed = hvd.grouped_allreduce(mine, op=hvd.Sum, compression=hvd.Compression.fp16)
    for got, want in zip(compressed, expected):
        same(got, want)
    copies = [t.clone() for t in mine]
    for got, copy, want in zip(hvd.grouped_allreduce_(copies, op=hvd.Sum), copies, expected):
        assert got is copy
        same(got, want)
    for got, each in zip(hvd.grouped_allgather([mine[0], mine[2]]), [tensors[0], tensors[2]]):
        same(got, torch.cat(each))
    (got,) = hvd.grouped_reducescatter([mine[0]], op=hvd.Sum)
    same(got, rows_of(expected[0], hvd.rank()))


def leaf(*shape):
    return torch.ones(*shape, dtype=torch.float64, requires_grad=True)


def weight(rank, *shape):
    """The gradient that a rank's loss gives to its output."""
    count = int(torch.tensor(shape).prod())
    return (torch.arange(count, dtype=torch.float64) + 1 + 10 * rank).reshape(shape)


def gradient(output, x):
    (output * weight(hvd.rank(), *output.shape)).sum().backward()
    return x.grad


def check_gradients():
    rank, size = hvd.rank(), hvd.size()

    def total(*shape):
        return sum(weight(r, *shape) for r in range(size))

    for name in (None, "named"):
        x = leaf(4, 2)
        same(gradient(hvd.allreduce(x, op=hvd.Sum, name=name), x), total(4, 2))
        x = leaf(4, 2)
        mean = total(4, 2) / size
        same(gradient(hvd.allreduce(x, op=hvd.Average, name=name), x), mean)
        x = leaf(4, 2)
        y = hvd.allreduce(x, op=hvd.Sum, prescale_factor=0.5, postscale_factor=3.0)
        same(gradient(y, x), total(4, 2) * 1.5)
        x = leaf(3)
        y = hvd.allreduce(x.float(), op=hvd.Sum, compression=hvd.Compression.fp16)
        same(gradient(y.double(), x), total(3))
        # Each rank has other rows.
        x = leaf(rank + 1, 2)
        rows = sum(range(1, size + 1))
        first = sum(range(1, rank + 1))
        mean = total(rows, 2) / size
        same(gradient(hvd.allgather(x, name=name), x), mean[first : first + rank + 1])
        x = leaf(3)
        mean = total(3) / size
        root = size - 1
        want = mean if rank == root else torch.zeros(3, dtype=torch.float64)
        same(gradient(hvd.broadcast(x, root, name=name), x), want)
        # Rank r sends r + 1 rows to each; their gradients come back.
        x = leaf(size * (rank + 1))
        y, received = hvd.alltoall(x, splits=torch.full((size,), rank + 1).int(), name=name)
        assert not received.requires_grad
        rows = sum(range(1, size + 1))
        first = sum(range(1, rank + 1))
        want = torch.cat([weight(r, rows)[first : first + rank + 1] for r in range(size)])
        same(gradient(y, x), want)
        x = leaf(2 * size)
        want = torch.cat([weight(r, 2) for r in range(size)])
        same(gradient(hvd.reducescatter(x, op=hvd.Average, name=name), x), want)
        x = leaf(2 * size)
        same(gradient(hvd.reducescatter(x, op=hvd.Sum, name=name), x), want * size)

        x, z = leaf(3), leaf(2, 2)
        a, b = hvd.grouped_allreduce([x, z], op=hvd.Sum, name=name)
        ((a * weight(rank, 3)).sum() + (b * weight(rank, 2, 2)).sum()).backward()
        same(x.grad, total(3))
        same(z.grad, total(2, 2))
        x, z = leaf(rank + 1), leaf(1)
        a, b = hvd.grouped_allgather([x, z], name=name)
        ((a * weight(rank, *a.shape)).sum() + (b * weight(rank, size)).sum()).backward()
        rows = sum(range(1, size + 1))
        first = sum(range(1, rank + 1))
        same(x.grad, (total(rows) / size)[first : first + rank + 1])
        same(z.grad, (total(size) / size)[rank : rank + 1])
        x, z = leaf(2 * size), leaf(size)
        a, b = hvd.grouped_reducescatter([x, z], op=hvd.Sum, name=name)
        ((a * weight(rank, 2)).sum() + (b * weight(rank, 1)).sum()).backward()
        same(x.grad, want * size)
        same(z.grad, torch.cat([weight(r, 1) for r in range(size)]) * size)


def check_objects():
    sent = {"step": hvd.rank(), "weights": torch.arange(5.0) * hvd.rank()}
    got = hvd.broadcast_object(sent, root_rank=hvd.size() - 1, name="checkpoint")
    assert got["step"] == hvd.size() - 1
    same(got["weights"], torch.arange(5.0) * (hvd.size() - 1))
    assert [o["step"] for o in hvd.allgather_object(sent)] == list(range(hvd.size()))


def check_broadcast_parameters():
    torch.manual_seed(hvd.rank())
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    torch.manual_seed(0)
    expected = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    for name, tensor in model.state_dict().items():
        same(tensor, expected.state_dict()[name])
    with torch.no_grad():
        model[0].weight.fill_(hvd.rank())
    hvd.broadcast_parameters(list(model.named_parameters()), root_rank=hvd.size() - 1)
    same(model[0].weight.data, torch.full((4, 3), hvd.size() - 1.0))
    hvd.broadcast_parameters(model.named_parameters(), root_rank=0)
    hvd.broadcast_parameters({"a": None}, root_rank=0)
    for bad in (model.parameters(), 3, "text", torch.ones(3), {"a": 3}):
        with raises(ValueError, "params"):
            hvd.broadcast_parameters(bad, root_rank=0)


if __name__ == "__main__":
    checks.main(globals())
