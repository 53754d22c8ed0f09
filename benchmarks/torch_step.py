"""DistributedOptimizer against torch DistributedDataParallel over gloo, in turns on the same ranks.

    hvdrun -np 2 python benchmarks/torch_step.py --against gloo

The model has ResNet-50's 161 parameters and no arithmetic: its backward pass hands over one
gradient after the other, last parameter first, as a real one does. So a step is little else than
the exchange of 102 MB of gradients, with all that Python and the framework add. `alone` is the same
backward pass without any exchange. Gradients are kept and added to, so nothing is allocated.

DDP is measured as it comes and with gradient_as_bucket_view=True, which saves it a copy. `ratio` is
its median over ours: above 1 ours is faster.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import time

import numpy as np
import torch
import torch.distributed as dist

import allring.torch as hvd

REST_SECONDS = 0.005


def resnet50_shapes():
    """The shapes of the 161 parameters, from the architecture (He et al. 2015, table 1)."""

    def convolution(inputs, outputs, kernel):
        return [(outputs, inputs, kernel, kernel), (outputs,), (outputs,)]

    shapes = convolution(3, 64, 7)
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        outputs = 4 * width
        for block in range(blocks):
            shapes += convolution(inputs, width, 1)
            shapes += convolution(width, width, 3)
            shapes += convolution(width, outputs, 1)
            if block == 0:
                shapes += convolution(inputs, outputs, 1)
            inputs = outputs
    return shapes + [(1000, inputs), (1000,)]


class _Link(torch.autograd.Function):
    """One node per parameter: passes x on, and gives the parameter the gradient of x everywhere."""

    @staticmethod
    def forward(ctx, x, parameter):
        ctx.shape = parameter.shape
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient.expand(ctx.shape)


class Chain(torch.nn.Module):
    def __init__(self, shapes):
        super().__init__()
        self.parts = torch.nn.ParameterList(torch.nn.Parameter(torch.zeros(s)) for s in shapes)

    def forward(self, x):
        for part in self.parts:
            x = _Link.apply(x, part)
        return x


class Contestant:
    """A model, and what a step of it is."""

    def __init__(self, impl, mode, model, forward, finish):
        self.impl = impl
        self.mode = mode
        self.model = model
        self.seconds = []
        self._forward = forward
        self._finish = finish

    def step(self, gradient=0.0):
        """Backward pass and exchange: every element of every gradient grows by `gradient`."""
        x = torch.zeros((), requires_grad=True)
        self._forward(x).backward(torch.tensor(gradient))
        self._finish()

    def check(self, expected):
        """After a step whose gradients differ between ranks all ranks hold the mean."""
        self.model.zero_grad(set_to_none=False)
        self.step(float(hvd.rank() + 1))
        for parameter in self.model.parameters():
            if not bool(torch.isclose(parameter.grad, torch.tensor(expected), rtol=1e-6).all()):
                raise SystemExit(f"{self.impl}, {self.mode}: wrong gradients")
        self.model.zero_grad(set_to_none=False)


def make_alone(shapes):
    model = Chain(shapes)
    return Contestant("torch", "alone", model, model, lambda: None)


def make_ours(shapes):
    model = Chain(shapes)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters()
    )
    return Contestant("allring", "DistributedOptimizer", model, model, optimizer.synchronize)


def make_ddp(shapes, as_view):
    model = torch.nn.parallel.DistributedDataParallel(
        Chain(shapes), gradient_as_bucket_view=as_view
    )
    mode = "DDP, gradients as views" if as_view else "DDP"
    return Contestant("gloo", mode, model, model, lambda: None)


def join_gloo():
    """A process group of all ranks; they meet at a store whose port rank 0 is given."""
    one_host = hvd.local_size() == hvd.size()
    if one_host:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    host = "127.0.0.1" if one_host else hvd.broadcast_object(socket.gethostname(), 0)
    store = None
    if hvd.rank() == 0:
        store = dist.TCPStore(host, 0, hvd.size(), is_master=True, wait_for_workers=False)
    port = hvd.broadcast_object(store.port if store else None, 0)
    if store is None:
        store = dist.TCPStore(host, port, hvd.size(), is_master=False)
    dist.init_process_group("gloo", store=store, rank=hvd.rank(), world_size=hvd.size())


def start_together(against):
    if against:
        dist.barrier()
    else:
        hvd.barrier()


def measure(contestants, steps, warm_up, against):
    """Fills in their seconds: in turns, two steps at a time and one before that does not count."""
    for contestant in contestants:
        for _ in range(warm_up):
            contestant.step()
    for turn in range(max(1, steps // 2)):
        for contestant in contestants if turn % 2 == 0 else contestants[::-1]:
            time.sleep(REST_SECONDS)
            for count in (False, True, True):
                start_together(against)
                start = time.perf_counter()
                contestant.step()
                if count:
                    contestant.seconds.append(time.perf_counter() - start)


def summarise(contestants):
    """Results and ratios; of every step the slowest rank counts."""
    results = []
    for contestant in contestants:
        slowest = hvd.allreduce(
            torch.from_numpy(np.array(contestant.seconds)), op=hvd.Max, name="seconds"
        )
        ms = sorted(1e3 * slowest.numpy())
        results.append(
            {
                "impl": contestant.impl,
                "mode": contestant.mode,
                "time_ms": {"min": ms[0], "median": statistics.median(ms), "max": ms[-1]},
            }
        )
    ours = next(r for r in results if r["impl"] == "allring")["time_ms"]["median"]
    ratios = [
        {"against": r["impl"], "mode": r["mode"], "ratio": r["time_ms"]["median"] / ours}
        for r in results
        if r["impl"] == "gloo"
    ]
    return results, ratios


def report(document):
    ranks = f"{document['np']} rank{'s' * (document['np'] != 1)}"
    print(
        f"# torch_step: ResNet-50's {document['tensors']} parameters, {ranks}, "
        f"torch {document['torch']}"
    )
    print(f"{'impl':>10} {'mode':24} {'min':>9} {'median':>9} {'max (ms)':>9} {'ratio':>7}")
    ratios = {r["mode"]: r["ratio"] for r in document["ratios"]}
    for result in document["results"]:
        ms = result["time_ms"]
        ratio = ratios.get(result["mode"])
        print(
            f"{result['impl']:>10} {result['mode']:24} {ms['min']:9.2f} {ms['median']:9.2f} "
            f"{ms['max']:9.2f} " + (f"{ratio:7.2f}" if ratio else ""),
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", choices=["gloo"], help="measures DDP over gloo in turns")
    parser.add_argument("-n", "--iters", type=int, default=20, help="steps that are timed")
    parser.add_argument("-w", "--warmup-iters", type=int, default=3, help="steps before that")
    parser.add_argument("--json", help="writes the results to a file (rank 0)")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    hvd.init()
    shapes = resnet50_shapes()
    contestants = [make_alone(shapes), make_ours(shapes)]
    if arguments.against:
        join_gloo()
        contestants += [make_ddp(shapes, False), make_ddp(shapes, True)]
    for contestant in contestants[1:]:
        contestant.check(sum(range(1, hvd.size() + 1)) / hvd.size())
    measure(contestants, arguments.iters, arguments.warmup_iters, arguments.against)
    results, ratios = summarise(contestants)
    if hvd.rank() == 0:
        document = {
            "np": hvd.size(),
            "model": "resnet50",
            "tensors": len(shapes),
            "torch": torch.__version__,
            "results": results,
            "ratios": ratios,
        }
        report(document)
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
    if arguments.against:
        dist.destroy_process_group()
    hvd.shutdown()


if __name__ == "__main__":
    sys.exit(main())
