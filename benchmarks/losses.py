"""NT-Xent, forward and backward, beside lightly, pytorch-metric-learning and the bare products.

    python -m benchmarks.losses [--images 256 1024 4096 8192] [--threads CORES] [--no-memory]
    python -m benchmarks.losses --images 65536 --no-peers --repeats 1

Two views, d = 128, float32. The bare products are the four matrix products that forward and
backward consist of, without symmetry: a floor for what does not use it. Extra memory is the peak
of resident memory beyond the rows, in a process of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch

from benchmarks._machine import cores
from benchmarks._timing import Seconds, alternate, extra_memory, figure, limit, summary
from contrastive_core import losses, pairs

D = 128
GOALS = {
    "lightly": {256: 2.0, 1024: 3.0, 4096: 5.0, 8192: 5.0},
    "pytorch_metric_learning": {4096: 10.0},
    "products": dict.fromkeys((256, 1024, 4096, 8192), 1 / 1.5),
}
EXTRA = 64.0  # megabytes
MACHINE = 24000.0  # megabytes: what larger batches must fit
MOST = {"pytorch_metric_learning": 4096, "lightly": 8192, "products": 16384}  # memory


def rows(images: int) -> torch.Tensor:
    return torch.randn(images, 2, D, generator=torch.Generator().manual_seed(0)).requires_grad_()


def ours(images: int | None) -> Callable[[], Any]:
    z, loss = rows(images or 64), losses.create("nt_xent", temperature=0.5)
    return lambda: torch.autograd.grad(loss(pairs.from_views(z)).value, z)


def lightly(images: int | None) -> Callable[[], Any]:
    from lightly.loss import NTXentLoss

    z, loss = rows(images or 64), NTXentLoss(0.5)
    return lambda: torch.autograd.grad(loss(z[:, 0], z[:, 1]), z)


def pytorch_metric_learning(images: int | None) -> Callable[[], Any]:
    from pytorch_metric_learning.losses import SupConLoss

    images = images or 64
    z, loss = rows(images), SupConLoss(temperature=0.5)
    labels = torch.arange(images).repeat_interleave(2)
    return lambda: torch.autograd.grad(loss(z.flatten(0, 1), labels), z)


def products(images: int | None) -> Callable[[], Any]:
    z = rows(images or 64).detach().flatten(0, 1)

    def run() -> None:
        for _ in range(2):
            s = z @ z.mT
        _ = s @ z, s.mT @ z

    return run


SIDES = (ours, lightly, pytorch_metric_learning, products)


def agree(images: int) -> None:
    """Values and gradients equal those of the peers that compute the same."""
    mine, theirs = ours(images)()[0], lightly(images)()[0]
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-7)


def measure(images: int, repeats: int, memory: bool, peers: bool) -> tuple[dict[str, Seconds], dict[str, float]]:
    """Seconds, and extra megabytes, of each side, or of ours alone."""
    sides = [s for s in SIDES if images <= MOST.get(s.__name__, images)] if peers else [ours]
    seconds = alternate(repeats, **{s.__name__: s(images) for s in sides})
    extra = {s.__name__: extra_memory(s, images) for s in sides} if memory else {}
    return seconds, extra


def lines(images: int, seconds: dict[str, Seconds], extra: dict[str, float]) -> list[dict]:
    """What the goals say of one size."""
    name = f"NT-Xent, {images:,} images"
    found = [
        figure(name, seconds["ours"], peer, seconds[peer], goals[images])
        for peer, goals in GOALS.items()
        if images in goals and peer in seconds
    ]
    if extra:
        most = EXTRA if images in GOALS["lightly"] else MACHINE
        found.append(limit(f"{name}, extra memory", extra["ours"], "MB", most))
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--images", type=int, nargs="+", default=[256, 1024, 4096, 8192])
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--repeats", type=int, default=7)
    options.add_argument("--no-memory", action="store_true")
    options.add_argument("--no-peers", action="store_true", help="Ours alone.")
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    if not args.no_peers:
        agree(256)
    found = []
    print(f"{args.threads} threads; milliseconds (times as long as ours), extra megabytes")
    for images in args.images:
        seconds, extra = measure(images, args.repeats, not args.no_memory, not args.no_peers)
        mine, line = seconds["ours"], [f"{images:>6}"]
        for name, taken in seconds.items():
            more = f", {extra[name]:,.0f} MB" if extra else ""
            line.append(f"{name} {taken * 1e3:,.1f} ({taken / mine:.1f}×{more})")
        print("  ".join(line), flush=True)
        found += lines(images, seconds, extra)
    if found:
        summary("losses", found)


if __name__ == "__main__":
    main()
