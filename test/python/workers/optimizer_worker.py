"""DistributedOptimizer: training on parts of a batch equals training on all of it."""

import copy
import gc
import warnings
import weakref

import torch

import allring.torch as hvd
import checks
from checks import raises

torch.set_num_threads(1)

BATCH = 24


def make_model():
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8), torch.nn.Linear(8, 3)
    ).double()


def batches(count):
    random = torch.Generator().manual_seed(checks.SEED)
    for _ in range(count):
        x = torch.randn(BATCH, 6, generator=random, dtype=torch.float64)
        yield x, torch.randn(BATCH, 3, generator=random, dtype=torch.float64)


def mine(tensor):
    return tensor.chunk(hvd.size())[hvd.rank()]


def loss_of(model, x, y):
    return torch.nn.functional.mse_loss(model(x), y)


def train_alone(make_optimizer, steps=5, model=None):
    model = model or make_model()
    optimizer = make_optimizer(model.parameters())
    for x, y in batches(steps):
        optimizer.zero_grad()
        loss_of(model, x, y).backward()
        optimizer.step()
    return model


def train_together(make_optimizer, steps=5, model=None, **options):
    model = model or make_model()
    options.setdefault("named_parameters", model.named_parameters())
    optimizer = hvd.DistributedOptimizer(make_optimizer(model.parameters()), **options)
    for x, y in batches(steps):
        optimizer.zero_grad()
        loss_of(model, mine(x), mine(y)).backward()
        optimizer.step()
    return model


def equal(model, other, tolerance=1e-12):
    for (name, p), q in zip(model.named_parameters(), other.parameters()):
        torch.testing.assert_close(
            p, q, rtol=tolerance, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}"
        )


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=1e-3)


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


def check_equals_one_process():
    for make in (sgd, adam):
        expected = train_alone(make)
        equal(train_together(make), expected)
        equal(train_together(make, named_parameters=None), expected)
        equal(train_together(make, groups=2), expected)
        equal(train_together(make, groups=100), expected)
        equal(train_together(make, gradient_predivide_factor=2.0), expected)
        model = make_model()
        two = list(model.parameters())
        grouped = train_together(make, model=model, groups=[[two[0], two[3]], [two[1]]])
        equal(grouped, expected)
        equal(train_together(make, compression=hvd.Compression.fp16), expected, 1e-2)
        equal(train_together(make, compression=hvd.Compression.bf16), expected, 5e-2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        equal(train_together(sgd, num_groups=2), train_alone(sgd))
    assert any("num_groups" in str(w.message) for w in caught)


def check_sum():
    def scaled(parameters):
        return torch.optim.SGD(parameters, lr=0.1 / hvd.size())

    def plain(parameters):
        return torch.optim.SGD(parameters, lr=0.1)

    equal(train_together(scaled, op=hvd.Sum), train_alone(plain))


def check_half_precision():
    for dtype in (torch.bfloat16, torch.float16):
        model, local = make_model().to(dtype), make_model().to(dtype)
        optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        x, y = next(batches(1))
        for m in (model, local):
            loss_of(m, mine(x).to(dtype), mine(y).to(dtype)).backward()
        optimizer.synchronize()
        for p, q in zip(model.parameters(), local.parameters()):
            everyone = hvd.allgather(q.grad.unsqueeze(0)).double().mean(0).to(dtype)
            torch.testing.assert_close(p.grad, everyone)


def check_accumulation():
    model = make_model()
    optimizer = hvd.DistributedOptimizer(
        sgd(model.parameters()), model.named_parameters(), backward_passes_per_step=2
    )
    expected = make_model()
    reference = sgd(expected.parameters())
    for x, y in batches(4):
        optimizer.zero_grad()
        reference.zero_grad()
        for part in (0, 1):
            loss_of(model, mine(x).chunk(2)[part], mine(y).chunk(2)[part]).backward()
            for rank in range(hvd.size()):
                own = [t.chunk(hvd.size())[rank].chunk(2)[part] for t in (x, y)]
                (loss_of(expected, *own) / hvd.size()).backward()
        optimizer.step()
        reference.step()
    equal(model, expected)
    if hvd.size() > 1:
        x, y = next(batches(1))
        for _ in range(2):
            loss_of(model, mine(x), mine(y)).backward()
        with raises(AssertionError, "backward_passes_per_step"):
            loss_of(model, mine(x), mine(y)).backward()
        optimizer.step()
        optimizer.set_backward_passes_per_step(1)
        optimizer.zero_grad()
        loss_of(model, mine(x), mine(y)).backward()
        optimizer.step()
    with raises(ValueError, "backward_passes_per_step"):
        optimizer.set_backward_passes_per_step(0)


def check_overlap():
    """Reductions are under way before backward() returns."""
    if hvd.size() == 1:
        return
    model = make_model()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    before_first_layer = []
    first = model[0].weight
    first.register_hook(lambda _: before_first_layer.append(len(optimizer._reducer._in_flight)))
    x, y = next(batches(1))
    loss_of(model, mine(x), mine(y)).backward()
    assert before_first_layer == [4] or before_first_layer == [5], before_first_layer
    assert len(optimizer._reducer._in_flight) == 6
    optimizer.step()
    assert not optimizer._reducer._in_flight


def check_missing_gradients():
    """A layer that only some ranks use counts as zero on the others."""

    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.both = torch.nn.Linear(6, 3).double()
            self.even = torch.nn.Linear(6, 3).double()
            self.never = torch.nn.Linear(6, 3).double()

        def forward(self, x, even):
            return self.both(x) + (self.even(x) if even else 0)

    for groups in (None, 1, 2):
        torch.manual_seed(3)
        model = Branches()
        expected = copy.deepcopy(model)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), groups=groups
        )
        reference = torch.optim.SGD(expected.parameters(), lr=0.1)
        for x, _ in batches(3):
            optimizer.zero_grad()
            reference.zero_grad()
            model(mine(x), hvd.rank() % 2 == 0).square().mean().backward()
            for rank, part in enumerate(x.chunk(hvd.size())):
                (expected(part, rank % 2 == 0).square().mean() / hvd.size()).backward()
            optimizer.step()
            reference.step()
        equal(model, expected)


def check_frozen_and_shared():
    for groups in (None, 2):
        model = make_model()
        model[3].weight = torch.nn.Parameter(model[2].weight[:3].detach().clone())
        model[2].bias = model[0].bias  # shared
        model[0].weight.requires_grad_(False)
        expected = copy.deepcopy(model)
        optimizer = hvd.DistributedOptimizer(
            sgd(model.parameters()), model.named_parameters(), groups=groups
        )
        reference = sgd(expected.parameters())
        for step, (x, y) in enumerate(batches(6)):
            if step == 2:  # thawed and frozen on the way
                for m in (model, expected):
                    m[0].weight.requires_grad_(True)
                    m[3].weight.requires_grad_(False)
                    m[3].weight.grad = None
            optimizer.zero_grad()
            reference.zero_grad()
            loss_of(model, mine(x), mine(y)).backward()
            loss_of(expected, x, y).backward()
            optimizer.step()
            reference.step()
        equal(model, expected)


def check_added_group():
    model, expected = make_model(), make_model()
    optimizer = hvd.DistributedOptimizer(sgd(model[0].parameters()))
    optimizer.add_param_group({"params": list(model[2].parameters()), "lr": 0.5})
    reference = sgd(expected[0].parameters())
    reference.add_param_group({"params": list(expected[2].parameters()), "lr": 0.5})
    for x, y in batches(3):
        model.zero_grad()
        expected.zero_grad()
        loss_of(model, mine(x), mine(y)).backward()
        loss_of(expected, x, y).backward()
        optimizer.step()
        reference.step()
    equal(model, expected)


def check_closure():
    model, expected = make_model(), make_model()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    reference = sgd(expected.parameters())
    for x, y in batches(3):

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = loss_of(model, mine(x), mine(y))
            loss.backward()
            return loss

        assert optimizer.step(closure) is not None
        reference.zero_grad()
        loss_of(expected, x, y).backward()
        reference.step()
    equal(model, expected)


def check_synchronize():
    """Clipping between backward() and step()."""
    model, expected = make_model(), make_model()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    reference = sgd(expected.parameters())
    for x, y in batches(3):
        optimizer.zero_grad(set_to_none=False)
        loss_of(model, mine(x), mine(y)).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        with optimizer.skip_synchronize():
            optimizer.step()
        reference.zero_grad(True)
        loss_of(expected, x, y).backward()
        torch.nn.utils.clip_grad_norm_(expected.parameters(), 0.1)
        reference.step()
    equal(model, expected)
    if hvd.size() == 1:
        return
    x, y = next(batches(1))
    loss_of(model, mine(x), mine(y)).backward()
    with raises(AssertionError, "zero_grad"):
        optimizer.zero_grad()
    with raises(AssertionError, "skip_synchronize"), optimizer.skip_synchronize():
        optimizer.step()
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.step()
    assert any("skip_synchronize" in str(w.message) for w in caught)


def check_several_optimizers():
    """Two models whose parameters have the same names, in one backward pass."""
    a, b = make_model(), make_model()
    expected_a, expected_b = make_model(), make_model()
    optimizers = [
        hvd.DistributedOptimizer(sgd(m.parameters()), m.named_parameters()) for m in (a, b)
    ]
    references = [sgd(m.parameters()) for m in (expected_a, expected_b)]
    for x, y in batches(3):
        for optimizer in optimizers + references:
            optimizer.zero_grad()
        (loss_of(a, mine(x), mine(y)) + 2 * loss_of(b, mine(x), mine(y))).backward()
        (loss_of(expected_a, x, y) + 2 * loss_of(expected_b, x, y)).backward()
        for optimizer in optimizers + references:
            optimizer.step()
    equal(a, expected_a)
    equal(b, expected_b)


def check_dropped_optimizer():
    """The hooks of an optimizer go with it."""
    model = make_model()
    first = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
    assert not model[0].weight._post_accumulate_grad_hooks
    expected = train_alone(sgd)
    equal(train_together(sgd, model=model), expected)


def check_class_and_scheduler():
    model, expected = make_model(), make_model()
    plain = sgd(model.parameters())
    early = torch.optim.lr_scheduler.ExponentialLR(plain, 0.9)  # made before it is distributed
    optimizer = hvd.DistributedOptimizer(plain, model.named_parameters())
    assert isinstance(optimizer, torch.optim.SGD)
    assert type(optimizer).__name__ == "SGD"
    late = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    reference = sgd(expected.parameters())
    schedules = [
        torch.optim.lr_scheduler.ExponentialLR(reference, 0.9),
        torch.optim.lr_scheduler.StepLR(reference, 2, 0.5),
    ]
    steps = []
    optimizer.register_step_pre_hook(lambda *_: steps.append("before"))
    optimizer.register_step_post_hook(lambda *_: steps.append("after"))
    for x, y in batches(4):
        optimizer.zero_grad()
        reference.zero_grad()
        loss_of(model, mine(x), mine(y)).backward()
        loss_of(expected, x, y).backward()
        optimizer.step()
        reference.step()
        for schedule in (early, late, *schedules):
            schedule.step()
    assert optimizer.param_groups[0]["lr"] == reference.param_groups[0]["lr"]
    assert steps == ["before", "after"] * 4
    equal(model, expected)


def check_state():
    """Rank 0's checkpoint becomes everybody's state, without a step."""
    for make in (sgd, adam):
        expected = train_alone(make, 3)
        reference = make(expected.parameters())
        model = make_model()
        optimizer = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters())
        trained = make(train_alone(make, 3).parameters())
        for x, y in batches(2):  # state that only rank 0 will have
            trained.zero_grad()
            loss_of(expected, x, y).backward()
            for p, q in zip(trained.param_groups[0]["params"], expected.parameters()):
                p.grad = q.grad.clone()
            trained.step()
            expected.zero_grad()
        checkpoint = trained.state_dict()
        checkpoint["param_groups"][0]["lr"] = 0.25
        reference.load_state_dict(copy.deepcopy(checkpoint))
        if hvd.rank() == 0:
            optimizer.load_state_dict(copy.deepcopy(checkpoint))
            model.load_state_dict(expected.state_dict())
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        hvd.broadcast_optimizer_state(optimizer, root_rank=0, model=model)
        assert optimizer.param_groups[0]["lr"] == 0.25
        for x, y in batches(2):
            optimizer.zero_grad()
            reference.zero_grad()
            loss_of(model, mine(x), mine(y)).backward()
            loss_of(expected, x, y).backward()
            optimizer.step()
            reference.step()
        equal(model, expected)
        again = hvd.DistributedOptimizer(make(model.parameters()), model.named_parameters())
        again.load_state_dict(optimizer.state_dict())
        assert str(again.state_dict()) == str(optimizer.state_dict())
        hvd.broadcast_optimizer_state(again, root_rank=hvd.size() - 1)
        assert str(again.state_dict()) == str(optimizer.state_dict())


def check_load_state_while_reducing():
    model = make_model()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    x, y = next(batches(1))
    loss_of(model, mine(x), mine(y)).backward()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
    loss_of(model, mine(x), mine(y)).backward()
    optimizer.step()


def check_sparse():
    def table(sparse):
        torch.manual_seed(1)
        return torch.nn.Embedding(10, 4, sparse=sparse)

    model, expected = table(True), table(False)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0), sparse_as_dense=True
    )
    model(torch.tensor([hvd.rank(), 9])).sum().backward()
    optimizer.step()
    for rank in range(hvd.size()):
        (expected(torch.tensor([rank, 9])).sum() / hvd.size()).backward()
    torch.optim.SGD(expected.parameters(), lr=1.0).step()
    torch.testing.assert_close(model.weight, expected.weight)
    if hvd.size() == 1:
        return
    model = table(True)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0))
    with raises(NotImplementedError, "sparse_as_dense"):
        model(torch.tensor([1])).sum().backward()


def check_mismatch_leaves_it_usable():
    if hvd.size() == 1:
        return
    model = make_model()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    x, y = next(batches(1))
    loss_of(model, mine(x), mine(y)).backward()
    optimizer.step()
    optimizer.zero_grad()
    last = model[3]
    width = 2 if hvd.rank() == 0 else 3
    odd = torch.nn.Linear(8, width).double()
    wrong = hvd.DistributedOptimizer(torch.optim.SGD(odd.parameters(), lr=0.1))
    odd(last.weight.detach()).sum().backward()
    with raises(hvd.MismatchError, "noname"):
        wrong.step()
    loss_of(model, mine(x), mine(y)).backward()
    optimizer.step()


def check_grad_scaler():
    model, expected = make_model().float(), make_model().float()
    optimizer = hvd.DistributedOptimizer(sgd(model.parameters()), model.named_parameters())
    reference = sgd(expected.parameters())
    scalers = [torch.amp.GradScaler("cpu", init_scale=1024.0) for _ in range(2)]
    for step, (x, y) in enumerate(batches(3)):
        x, y = x.float(), y.float()
        if step == 1:
            x = x * float("inf")  # this step is skipped
        optimizer.zero_grad()
        scalers[0].scale(loss_of(model, mine(x), mine(y))).backward()
        optimizer.synchronize()
        scalers[0].unscale_(optimizer)
        with optimizer.skip_synchronize():
            scalers[0].step(optimizer)
        scalers[0].update()
        reference.zero_grad()
        scalers[1].scale(loss_of(expected, x, y)).backward()
        scalers[1].step(reference)
        scalers[1].update()
    assert scalers[0].get_scale() == scalers[1].get_scale()
    equal(model, expected, 1e-4)


def check_channels_last():
    torch.manual_seed(2)
    model = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 5, 5).to(memory_format=torch.channels_last) * (hvd.rank() + 1)
    local = copy.deepcopy(model)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for m in (model, local):
        m(x).sum().backward()
    optimizer.synchronize()
    mean = hvd.allgather(local.weight.grad.unsqueeze(0)).mean(0)
    torch.testing.assert_close(model.weight.grad, mean)


def check_bad_arguments():
    model = make_model()

    def optimizer():
        return sgd(model.parameters())

    named = list(model.named_parameters())
    with raises(ValueError, "pairs"):
        hvd.DistributedOptimizer(optimizer(), model.parameters())
    with raises(ValueError, "unique", "0.weight"):
        hvd.DistributedOptimizer(optimizer(), named + named[:1])
    with raises(ValueError, "lacks", "0.5"):
        hvd.DistributedOptimizer(optimizer(), named[:-1])
    with raises(ValueError, "LBFGS"):
        hvd.DistributedOptimizer(torch.optim.LBFGS(model.parameters()))
    with raises(ValueError, "LBFGS"):
        hvd.broadcast_optimizer_state(torch.optim.LBFGS(model.parameters()), 0)
    with raises(ValueError, "gradient_predivide_factor"):
        hvd.DistributedOptimizer(optimizer(), op=hvd.Sum, gradient_predivide_factor=2.0)
    with raises(NotImplementedError, "Adasum"):
        hvd.DistributedOptimizer(optimizer(), op=hvd.Adasum)
    with raises(ValueError, "backward_passes_per_step"):
        hvd.DistributedOptimizer(optimizer(), backward_passes_per_step=0)
    for groups in (-1, "two", [model[0].weight], [[model[0].weight], [model[0].weight]]):
        with raises(ValueError, "group"):
            hvd.DistributedOptimizer(optimizer(), groups=groups)
    with raises(ValueError, "already"):
        hvd.DistributedOptimizer(hvd.DistributedOptimizer(optimizer()))
    assert hvd.DistributedOptimizer(optimizer()).find_duplicates([1, 2, 1]) == {1}


def check_long_training():
    """All ranks hold the same bits."""
    model = train_together(adam, steps=50, groups=3)
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    everyone = hvd.allgather(flat.unsqueeze(0))
    assert torch.equal(everyone, everyone[:1].expand_as(everyone))
    equal(model, train_alone(adam, steps=50), 1e-9)


if __name__ == "__main__":
    checks.main(globals())
