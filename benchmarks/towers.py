"""SigLIP and symmetric InfoNCE between two towers, forward and backward, beside open_clip's losses.

    python -m benchmarks.towers [--pairs 1024 8192] [--threads CORES] [--repeats 5]

d = 128, float32, τ = 0.07. The peers are open_clip's published formulas, written out here: ClipLoss (cross entropy over
rows and over columns, two products) and SigLipLoss. In float64 values and gradients are equal to 1e-6. Extra memory is
the peak of resident memory beyond the rows, in a process of its own.

The floor is what no implementation goes below: the three products of a·bᵀ and of both gradients, in tiles, and nothing
else. How far open_clip is above it is the most that any ratio can reach.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from benchmarks._machine import cores
from benchmarks._timing import alternate, extra_memory, figure, limit, summary
from contrastive_core import losses, pairs
from contrastive_core.ops.tiles import TILE

D, TAU, BIAS = 128, 0.07, -10.0
GOALS = {1024: 1.0, 8192: 2.5}
EXTRA = 64.0  # megabytes


def rows(n: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    a, b = (torch.randn(n, D, generator=draw, dtype=dtype).requires_grad_() for _ in range(2))
    return a, b


def clip_loss(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x, y = functional.normalize(a, dim=1), functional.normalize(b, dim=1)
    target = torch.arange(len(a))
    by_row, by_column = (functional.cross_entropy(u @ v.mT / TAU, target) for u, v in ((x, y), (y, x)))
    return (by_row + by_column) / 2


def siglip_loss(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    x, y = functional.normalize(a, dim=1), functional.normalize(b, dim=1)
    signs = 2 * torch.eye(len(a), dtype=a.dtype) - 1
    return -functional.logsigmoid(signs * (x @ y.mT / TAU + BIAS)).sum() / len(a)


def our_clip(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return losses.create("info_nce", temperature=TAU)(pairs.from_towers(a, b)).value


def our_siglip(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    loss = losses.create("siglip", temperature=TAU, bias=BIAS)
    return loss(pairs.from_towers(a, b, direction="a_to_b")).value


SIDES = {"info_nce, both ways": (our_clip, clip_loss), "siglip": (our_siglip, siglip_loss)}


def step(loss: Callable[..., torch.Tensor], n: int | None) -> Callable[[], Any]:
    towers = rows(n or 64)
    return lambda: torch.autograd.grad(loss(*towers), towers)


def floor(n: int) -> Callable[[], Any]:
    """The products of forward and backward pass, and nothing else."""
    a, b = (z.detach() for z in rows(n))

    def products() -> None:
        for x in a.split(TILE):
            for y in b.split(TILE):
                logits = x @ y.mT
                _ = logits @ y, logits.mT @ x

    return products


def agree(n: int) -> None:
    """Values and gradients in float64."""
    for ours, theirs in SIDES.values():
        towers = rows(n, torch.float64)
        mine, want = ours(*towers), theirs(*towers)
        torch.testing.assert_close(mine, want, rtol=1e-6, atol=1e-6)
        found = (torch.autograd.grad(x, towers) for x in (mine, want))
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-9)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, nargs="+", default=list(GOALS))
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--repeats", type=int, default=5)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    agree(512)
    found = []
    for n in args.pairs:
        for name, (ours, theirs) in SIDES.items():
            taken = alternate(args.repeats, ours=step(ours, n), theirs=step(theirs, n), floor=floor(n))
            extra = [extra_memory(partial(step, loss), n) for loss in (ours, theirs)]
            work = f"{name}, {n:,} pairs"
            ratio = taken["theirs"] / taken["ours"]
            print(f"{work}: {taken['ours'] * 1e3:,.1f} ms, {extra[0]:,.0f} MB")
            print(f"    open_clip: {ratio:.2f} times as long, {extra[1]:,.0f} MB")
            over = [taken[side] / taken["floor"] for side in ("ours", "theirs")]
            print(f"    floor: {taken['floor'] * 1e3:,.1f} ms; this takes {over[0]:.2f} times, open_clip {over[1]:.2f}")
            goal = GOALS.get(n, 1.0)
            found.append(figure(work, taken["ours"], "open_clip", taken["theirs"], goal))
            found.append(limit(f"{work}, extra memory", extra[0], "MB", EXTRA))
    summary("towers", found)


if __name__ == "__main__":
    main()
