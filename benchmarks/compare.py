"""Debiased linear CKA between all pairs of several embeddings, beside the textbook's n×n kernels.

    python -m benchmarks.compare [--runs 8] [--rows 10000] [--width 512] [--threads CORES]
        [--repeats 5]

The peer writes HSIC out in its unbiased form (Song et al. 2012) over n×n kernels with the diagonal
left out, in float32 as ours, pair by pair; each kernel is made once. It is timed once, since it
takes long and 0.4 GB a run. Goal: all pairs within a second.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks._machine import cores
from benchmarks._timing import alternate, extra_memory, limit, summary
from contrastive_core.evaluation.representation_similarity import ckas

GOAL = 1.0  # seconds


def some(runs: int, rows: int, width: int) -> list[np.ndarray]:
    """Embeddings (rows, width) float32 that share a part and differ in the rest."""
    draw = np.random.default_rng(0)
    shared = draw.standard_normal((rows, 64), np.float32)
    return [
        shared @ draw.standard_normal((64, width), np.float32)
        + 4 * draw.standard_normal((rows, width), np.float32)
        for _ in range(runs)
    ]


def by_kernels(parts: list[np.ndarray]) -> np.ndarray:
    """The same matrix from n×n kernels."""
    kernels = []
    for x in parts:
        x = torch.from_numpy(x - x.mean(0))
        k = x @ x.mT
        k.fill_diagonal_(0)
        kernels.append(k)
    n = len(parts[0])

    def hsic(a: torch.Tensor, b: torch.Tensor) -> float:
        rows = torch.dot(a.sum(0).double(), b.sum(0).double())
        total = torch.linalg.vecdot(a, b).double().sum()  # 10⁸ numbers: not in float32 alone
        whole = a.sum(dtype=torch.float64) * b.sum(dtype=torch.float64)
        return float(total + whole / ((n - 1) * (n - 2)) - 2 / (n - 2) * rows)

    found = np.empty((len(parts), len(parts)))
    for i, a in enumerate(kernels):
        for j, b in enumerate(kernels[: i + 1]):
            found[i, j] = found[j, i] = hsic(a, b)
    own = np.sqrt(found.diagonal())
    return found / own[:, None] / own


def ours(size: tuple[int, int, int] | None) -> Callable[[], Any]:
    """All pairs, for the watch on memory."""
    parts = some(*(size or (2, 64, 8)))
    return lambda: ckas(parts)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=8)
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--width", type=int, default=512)
    options.add_argument("--threads", type=int, default=cores())
    options.add_argument("--repeats", type=int, default=5)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    size = (args.runs, args.rows, args.width)
    parts = some(*size)
    mine = alternate(args.repeats, ours=lambda: ckas(parts))["ours"]  # before torch's threads start
    start = time.perf_counter()
    peer = by_kernels(parts)
    theirs = time.perf_counter() - start
    away = float(np.abs(ckas(parts) - peer).max())
    assert away < 1e-3, f"ours and the kernels' differ by {away:.2g}"
    memory = extra_memory(ours, size)
    print(f"largest difference to the kernels' {away:.1e}; ours needs {memory:.0f} MB more")
    name = f"CKA between {args.runs} runs, {args.rows:,} × {args.width}"
    print(f"n×n kernels, once: {theirs:.1f} s, {theirs / mine:.0f} times as long; ", end="")
    print(f"load {os.getloadavg()[0]:.1f}")
    summary("compare", [limit(name, mine, "s", GOAL, max(mine.rounds))])


if __name__ == "__main__":
    main()
