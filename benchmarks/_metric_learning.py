"""A loss beside pytorch-metric-learning's, forward and backward, over batch sizes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import torch

from benchmarks._machine import cores
from benchmarks._timing import Seconds, alternate, figure, summary
from contrastive_core import pairs
from contrastive_core.losses import Loss

__all__ = ["beside"]

PEER, WIDTH = "pytorch-metric-learning", 64


def beside(
    name: str,
    title: str,
    loss: Loss,
    theirs: Any,
    classes: Callable[[int], int],
    rows: Sequence[int],
    goals: dict[int, float],
    about: str,
) -> None:
    """Read the options, measure both sides at each size, print the table and the JSON line.

    Args: classes: how many classes a batch of n rows has. goals: least ratio, by rows.
    """
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--rows", type=int, nargs="+", default=list(rows))
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--repeats", type=int, default=7)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    lines = []
    for n in args.rows:
        found = _measure(loss, theirs, n, classes(n), args.repeats)
        a, b = 1e3 * found["ours"], 1e3 * found["theirs"]
        print(f"{n:>6} rows: {a:,.1f} ms, {PEER} {b:,.1f} ms: {b / a:.1f}×")
        if n in goals:
            made = f"{title}, {n} rows"
            lines.append(figure(made, found["ours"], PEER, found["theirs"], goals[n]))
    summary(name, lines)


def _measure(loss: Loss, theirs: Any, n: int, classes: int, repeats: int) -> dict[str, Seconds]:
    z = torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(0)).requires_grad_()
    labels = torch.arange(n) % classes

    def ours() -> torch.Tensor:
        return torch.autograd.grad(loss(pairs.from_labels(z, labels)).value, z)[0]

    def peer() -> torch.Tensor:
        return torch.autograd.grad(theirs(z, labels), z)[0]

    torch.testing.assert_close(ours(), peer(), rtol=1e-3, atol=1e-6)
    return alternate(repeats, ours=ours, theirs=peer)
