"""All triplets of a batch, forward and backward, beside pytorch-metric-learning.

    python -m benchmarks.triplet [--rows 128 256 512] [--threads 4]

Ours sorts each anchor's distances (n² log n); the peer lists every triplet (n³).
"""

from __future__ import annotations

import argparse

import torch

from benchmarks._timing import Seconds, alternate, figure, summary
from contrastive_core import losses, pairs

PEER, GOAL = "pytorch-metric-learning", 7.0


def measure(n: int, repeats: int) -> dict[str, Seconds]:
    """Median seconds of both sides: n rows of 64 in n / 8 classes."""
    from pytorch_metric_learning.distances import LpDistance
    from pytorch_metric_learning.losses import TripletMarginLoss
    from pytorch_metric_learning.reducers import MeanReducer

    z = torch.randn(n, 64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels, loss = torch.arange(n) % (n // 8), losses.create("triplet")
    theirs = TripletMarginLoss(0.2, distance=LpDistance(power=2), reducer=MeanReducer())

    def ours() -> torch.Tensor:
        return torch.autograd.grad(loss(pairs.from_labels(z, labels)).value, z)[0]

    def peer() -> torch.Tensor:
        return torch.autograd.grad(theirs(z, labels), z)[0]

    torch.testing.assert_close(ours(), peer(), rtol=1e-3, atol=1e-6)
    return alternate(repeats, ours=ours, theirs=peer)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[128, 256, 512])
    options.add_argument("--threads", type=int, default=4)
    options.add_argument("--repeats", type=int, default=7)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    found = {n: measure(n, args.repeats) for n in args.rows}
    for n, sides in found.items():
        a, b = 1e3 * sides["ours"], 1e3 * sides["theirs"]
        print(f"{n:>6} rows: {a:,.1f} ms, {PEER} {b:,.1f} ms: {b / a:.1f}×")
    summary(
        "triplet",
        [
            figure(f"all triplets, {n} rows", s["ours"], PEER, s["theirs"], GOAL)
            for n, s in found.items()
            if n >= 256
        ],
    )


if __name__ == "__main__":
    main()
