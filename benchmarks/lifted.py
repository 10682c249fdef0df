"""Smooth lifted structure, forward and backward, beside pytorch-metric-learning.

    python -m benchmarks.lifted [--rows 64 128 256] [--threads 4]

Ours adds two row sums per positive pair; the peer builds a row of negatives for every pair.
"""

from __future__ import annotations

import argparse

import torch

from benchmarks._timing import alternate, last_line
from contrastive_core import losses, pairs


def measure(n: int, repeats: int) -> dict[str, float]:
    """Median seconds of both sides: n rows of 64 in n / 4 classes."""
    from pytorch_metric_learning.distances import LpDistance
    from pytorch_metric_learning.losses import LiftedStructureLoss

    z = torch.randn(n, 64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels, loss = torch.arange(n) % (n // 4), losses.create("lifted_structure")
    theirs = LiftedStructureLoss(1.0, 0.0, distance=LpDistance(normalize_embeddings=False))
    return alternate(
        repeats,
        ours=lambda: torch.autograd.grad(loss(pairs.from_labels(z, labels)).value, z),
        theirs=lambda: torch.autograd.grad(theirs(z, labels), z),
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[64, 128, 256])
    options.add_argument("--threads", type=int, default=4)
    options.add_argument("--repeats", type=int, default=7)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    for n in args.rows:
        found = measure(n, args.repeats)
        a, b = 1e3 * found["ours"], 1e3 * found["theirs"]
        print(f"{n:>6} rows: {a:,.1f} ms, pytorch-metric-learning {b:,.1f} ms: {b / a:.1f}×")
    last_line(f"lifted_smooth_{n}", a, "ms", "pytorch-metric-learning", b, 40.0)


if __name__ == "__main__":
    main()
