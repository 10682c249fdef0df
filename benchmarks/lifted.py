"""Smooth lifted structure, forward and backward, beside pytorch-metric-learning.

    python -m benchmarks.lifted [--rows 64 128 256] [--threads 4]

Ours adds two row sums per positive pair; the peer builds a row of negatives for every pair.
"""

from __future__ import annotations

import argparse

import torch

from benchmarks._timing import Seconds, alternate, figure, summary
from contrastive_core import losses, pairs

PEER, GOAL = "pytorch-metric-learning", 30.0


def measure(n: int, repeats: int) -> dict[str, Seconds]:
    """Median seconds of both sides: n rows of 64 in n / 4 classes."""
    from pytorch_metric_learning.distances import LpDistance
    from pytorch_metric_learning.losses import LiftedStructureLoss

    z = torch.randn(n, 64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels, loss = torch.arange(n) % (n // 4), losses.create("lifted_structure")
    theirs = LiftedStructureLoss(1.0, 0.0, distance=LpDistance(normalize_embeddings=False))

    def ours() -> torch.Tensor:
        return torch.autograd.grad(loss(pairs.from_labels(z, labels)).value, z)[0]

    def peer() -> torch.Tensor:
        return torch.autograd.grad(theirs(z, labels), z)[0]

    torch.testing.assert_close(ours(), peer(), rtol=1e-3, atol=1e-6)
    return alternate(repeats, ours=ours, theirs=peer)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[64, 128, 256])
    options.add_argument("--threads", type=int, default=4)
    options.add_argument("--repeats", type=int, default=7)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    found = {n: measure(n, args.repeats) for n in args.rows}
    for n, sides in found.items():
        a, b = 1e3 * sides["ours"], 1e3 * sides["theirs"]
        print(f"{n:>6} rows: {a:,.1f} ms, {PEER} {b:,.1f} ms: {b / a:.1f}×")
    summary(
        "lifted",
        [
            figure(f"lifted structure, {n} rows", s["ours"], PEER, s["theirs"], GOAL)
            for n, s in found.items()
            if n >= 64
        ],
    )


if __name__ == "__main__":
    main()
