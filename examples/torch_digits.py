"""Trains a small convolutional network on scikit-learn's 1,797 images of handwritten digits.

    hvdrun -np 2 python examples/torch_digits.py

It runs as well under mpirun, srun and torchrun-style variables, and alone. Each rank takes an
equal part of each global batch, so any number of ranks that divides its size computes the same.
"""

import argparse
import hashlib

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from tqdm import tqdm

import allring.torch as hvd

WARMUP_EPOCHS = 3
REFERENCE_BATCH = 32  # the batch size that --lr is meant for


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64, help="of all ranks together")
    parser.add_argument("--lr", type=float, default=0.05, help=f"per {REFERENCE_BATCH} images")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--losses", metavar="FILE", help="write each step's loss into it")
    return parser.parse_args()


def load_data():
    """Training and test images as (1437, 1, 8, 8) and (360, 1, 8, 8), with their labels."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    test, train = order[:360], order[360:]
    return images[train], labels[train], images[test], labels[test]


def make_model():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 4 * 4, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )


def make_schedule(optimizer, steps_per_epoch, scale):
    """Goyal et al. 2017, section 2.2: from the reference batch's learning rate up to `scale` times
    as much, linearly over the first epochs."""
    warmup = WARMUP_EPOCHS * steps_per_epoch
    return torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (1 + (scale - 1) * min(step / warmup, 1)) / scale
    )


def weights_digest(model):
    """SHA-256 of all weights, as a tensor of 32 bytes."""
    digest = hashlib.sha256()
    for tensor in model.state_dict().values():
        digest.update(tensor.contiguous().numpy().tobytes())
    return torch.tensor(list(digest.digest()), dtype=torch.uint8)


def main():
    args = parse_arguments()
    hvd.init()
    if args.batch_size % hvd.size():
        raise SystemExit(f"--batch-size {args.batch_size} is no multiple of {hvd.size()} ranks")
    torch.set_num_threads(1)
    torch.manual_seed(args.seed + hvd.rank())  # rank 0's weights are the ones that count

    train_images, train_labels, test_images, test_labels = load_data()
    model = make_model()
    scale = args.batch_size / REFERENCE_BATCH
    optimizer = torch.optim.SGD(
        model.parameters(), lr=args.lr * scale, momentum=0.9, weight_decay=1e-4
    )
    optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    steps_per_epoch = len(train_images) // args.batch_size
    schedule = make_schedule(optimizer, steps_per_epoch, scale)
    share = args.batch_size // hvd.size()
    losses = []
    progress = tqdm(total=args.epochs * steps_per_epoch, unit="step", disable=hvd.rank() != 0)
    for epoch in range(args.epochs):
        shuffle = torch.Generator().manual_seed(args.seed * 1000 + epoch)  # equal on all ranks
        order = torch.randperm(len(train_images), generator=shuffle)
        for step in range(steps_per_epoch):
            first = step * args.batch_size + hvd.rank() * share
            mine = order[first : first + share]
            optimizer.zero_grad()
            loss = F.cross_entropy(model(train_images[mine]), train_labels[mine])
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(hvd.allreduce(loss.detach(), name="loss").item())
            progress.set_postfix(epoch=epoch + 1, loss=f"{losses[-1]:.4f}", refresh=False)
            progress.update()
    progress.close()

    # Each rank tests its part of the images.
    model.eval()
    with torch.no_grad():
        guesses = model(test_images[hvd.rank() :: hvd.size()]).argmax(1)
    right = (guesses == test_labels[hvd.rank() :: hvd.size()]).sum()
    accuracy = hvd.allreduce(right, op=hvd.Sum, name="right").item() / len(test_images)
    digests = hvd.allgather(weights_digest(model).unsqueeze(0), name="digests")
    same = bool((digests == digests[0]).all())

    if hvd.rank() == 0:
        print(f"test accuracy: {100 * accuracy:.2f} % of {len(test_images)} images")
        weights = "the same weights" if same else "DIFFERENT weights"
        print(f"all {hvd.size()} ranks hold {weights}")
        if args.losses:
            with open(args.losses, "w", encoding="utf-8") as file:
                file.writelines(f"{loss:.9g}\n" for loss in losses)
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
